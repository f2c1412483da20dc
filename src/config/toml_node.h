#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace optim_offload {

/// A TOML value together with where it was written. All that the readers need, so that the parser
/// (toml11) is known to one source file only.
struct TomlNode {
  struct Unsupported {};  ///< A date or a time; no setting has this type.
  using Array = std::vector<std::shared_ptr<TomlNode>>;
  using Table = std::map<std::string, std::shared_ptr<TomlNode>, std::less<>>;

  std::variant<Unsupported, bool, int64_t, double, std::string, Array, Table> value;
  std::string source;  ///< File name, or `--set` for an override.
  int64_t line = 0;    ///< From 1; 0 where there is none (an override).

  bool absent = false;  ///< A table that is not in the text, made so that reads have a place.

  /// Keys that were asked of this table so far, there or not: the valid choices.
  std::set<std::string, std::less<>> asked;

  const Table* table() const { return std::get_if<Table>(&value); }
  Table* table() { return std::get_if<Table>(&value); }

  /// `config.toml:12`, or `--set`.
  std::string where() const;

  /// "a string", "an integer", ...
  std::string type_name() const;

  /// The value as it could be written in TOML, cut to a readable length.
  std::string text() const;
};

/// Parses TOML. Throws `c10::Error` that names `source` and the line of the fault.
std::shared_ptr<TomlNode> parse_toml(std::string_view text, const std::string& source);

}  // namespace optim_offload
