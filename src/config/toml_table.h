#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/toml_node.h"

/// A strict reader of settings. How it is used:
///
///     TomlDocument document = TomlDocument::load("train.toml");
///     document.apply_override("trainer.optim.lr=3e-4");      // --set
///     TomlTable data = document.table("trainer.data");       // absent tables read as empty
///     options.seq_len = data.get_int("seq_len", 256, at_least<int64_t>(1));
///     options.task = data.get_string("task", "reverse", {"reverse", "copy"});
///     options.path = data.require_string("path");
///     if (options.a && options.b) data.fail("b", "a and b exclude each other; unset one");
///     document.reject_unknown_keys();                        // after everything was read
///
/// Every error is a `c10::Error` of the form
///     [optim_offload] train.toml:12: trainer.data.seq_len = 0 must be at least 1
/// and names file, line, full key, value and what is valid.
namespace optim_offload {

/// A condition on a value, with the words that complete "must be ...".
template <typename T>
struct TomlCheck {
  std::function<bool(const T&)> holds;  ///< Empty: every value will do.
  std::string says;
};

namespace detail {
template <typename T>
std::string to_words(const T& value) {
  std::ostringstream out;
  out.precision(15);  // 1048576 rather than 1.04858e+06
  out << value;
  return out.str();
}
}  // namespace detail

template <typename T>
TomlCheck<T> at_least(T low) {
  return {[low](const T& v) { return v >= low; }, "at least " + detail::to_words(low)};
}

template <typename T>
TomlCheck<T> above(T low) {
  return {[low](const T& v) { return v > low; }, "above " + detail::to_words(low)};
}

/// low <= value <= high.
template <typename T>
TomlCheck<T> between(T low, T high) {
  return {[low, high](const T& v) { return v >= low && v <= high; },
          "from " + detail::to_words(low) + " to " + detail::to_words(high)};
}

/// low <= value < high, as of a decay rate.
template <typename T>
TomlCheck<T> from_below(T low, T high) {
  return {[low, high](const T& v) { return v >= low && v < high; },
          "at least " + detail::to_words(low) + " and below " + detail::to_words(high)};
}

/// A view of one table of a TomlDocument; cheap to copy, keeps the document's tree alive.
///
/// Getters remember the keys they were asked for. `get_*` return the default where the key is
/// absent; `require_*` then throw. A value that is there is always checked: a wrong type, a value
/// outside `check`, NaN and infinity throw, and never give the default.
class TomlTable {
 public:
  TomlTable(std::string path, std::shared_ptr<TomlNode> node);

  /// Full dotted name, as `trainer.data`; empty for the root.
  const std::string& path() const { return path_; }

  /// Whether `key` is there. Does not count as asking for it.
  bool has(std::string_view key) const;

  /// Names of the keys that are there, in alphabetical order.
  std::vector<std::string> keys() const;

  int64_t get_int(std::string_view key, int64_t fallback, const TomlCheck<int64_t>& check = {});
  int64_t require_int(std::string_view key, const TomlCheck<int64_t>& check = {});

  /// Takes integers too.
  double get_float(std::string_view key, double fallback, const TomlCheck<double>& check = {});
  double require_float(std::string_view key, const TomlCheck<double>& check = {});

  bool get_bool(std::string_view key, bool fallback);
  bool require_bool(std::string_view key);

  /// With `choices`, the value must be one of them.
  std::string get_string(std::string_view key, std::string fallback,
                         const std::vector<std::string>& choices = {});
  std::string require_string(std::string_view key, const std::vector<std::string>& choices = {});

  /// An array of exactly `fallback.size()` numbers, each within `check`.
  std::vector<double> get_floats(std::string_view key, std::vector<double> fallback,
                                 const TomlCheck<double>& check = {});

  /// An array of numbers of any length, each within `check`.
  std::vector<int64_t> get_ints(std::string_view key, std::vector<int64_t> fallback,
                                const TomlCheck<int64_t>& check = {});

  /// An array of strings of any length.
  std::vector<std::string> get_strings(std::string_view key, std::vector<std::string> fallback);

  /// A table within this one; empty where it is absent. A value that is no table throws.
  TomlTable table(std::string_view key);

  /// The value at `key` without any check, or nullptr; counts as asking. For values of more than
  /// one type (`true` or `"required"`).
  const TomlNode* find(std::string_view key);

  /// Throws an error that names file, line, key and value, followed by `reason`, which should say
  /// what to set. For an absent key it names the table instead.
  [[noreturn]] void fail(std::string_view key, const std::string& reason) const;

  /// Throws on the first key (by line) that nobody asked for; the message lists what was asked for,
  /// and the nearest name. Tables within this one are not entered. With `prefix`, only keys
  /// that begin with it are looked at. `context` is added in brackets after "unknown key", as in
  /// `for type = "sgd"`.
  void reject_unknown_keys(std::string_view prefix = {}, std::string_view context = {}) const;

 private:
  friend class TomlDocument;
  std::string full_name(std::string_view key) const;
  const TomlNode* require(std::string_view key, std::string_view type);

  std::string path_;
  std::shared_ptr<TomlNode> node_;
};

/// One parsed file, with overrides applied to it.
class TomlDocument {
 public:
  /// Throws where the file is missing, unreadable or not TOML (then with the line).
  static TomlDocument load(const std::filesystem::path& path);

  /// `name` stands in messages where a file name would.
  static TomlDocument parse(std::string_view text, const std::string& name);

  /// Sets one value from `dotted.key=value`, the value in TOML's form; what is not TOML is taken as
  /// a string, so that `trainer.optim.type=adamw` needs no quotes. Tables are made on the way.
  /// Call it before the tables are read. Errors about the value name `--set` in the file's place.
  void apply_override(std::string_view assignment);

  TomlTable root() const;

  /// The table at a dotted path, empty where absent. Counts as asking for each table on the way.
  TomlTable table(std::string_view path) const;

  /// reject_unknown_keys() of the root and of every table that was asked for, however deep.
  void reject_unknown_keys() const;

  const std::string& name() const { return name_; }

 private:
  TomlDocument(std::string name, std::shared_ptr<TomlNode> root);

  std::string name_;
  std::shared_ptr<TomlNode> root_;
};

}  // namespace optim_offload
