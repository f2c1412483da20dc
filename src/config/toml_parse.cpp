// The one file that knows toml11. Written against what 3.x and 4.x share; where they differ,
// `requires` asks which one is there.
#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <toml.hpp>

#include "config/toml_node.h"
#include "config/utf8.h"

namespace optim_offload {
namespace {

// toml11 descends by recursion, so that hostile nesting would run out of stack.
constexpr int kDeepestNesting = 100;
constexpr int kLongestDottedKey = 100;
constexpr size_t kLargestText = size_t{4} << 20;

template <typename Location>
int64_t line_of(const Location& location) {
  if constexpr (requires { location.first_line_number(); }) {
    return static_cast<int64_t>(location.first_line_number());  // 4.x
  } else {
    return static_cast<int64_t>(location.line());  // 3.x
  }
}

// 0 where the error carries no place.
template <typename Error>
int64_t error_line(const Error& error) {
  if constexpr (requires { error.errors(); }) {  // 4.x
    for (const auto& one : error.errors()) {
      for (const auto& location : one.locations()) return line_of(location.first);
    }
    return 0;
  } else {
    return line_of(error.location());
  }
}

template <typename Value>
std::shared_ptr<TomlNode> convert(const Value& from, const std::string& source) {
  auto node = std::make_shared<TomlNode>();
  node->source = source;
  node->line = line_of(from.location());
  switch (from.type()) {
    case toml::value_t::boolean:
      node->value = from.as_boolean();
      break;
    case toml::value_t::integer:
      node->value = static_cast<int64_t>(from.as_integer());
      break;
    case toml::value_t::floating:
      node->value = static_cast<double>(from.as_floating());
      break;
    case toml::value_t::string:
      node->value = toml::get<std::string>(from);
      break;
    case toml::value_t::array: {
      TomlNode::Array array;
      for (const auto& item : from.as_array()) array.push_back(convert(item, source));
      node->value = std::move(array);
      break;
    }
    case toml::value_t::table: {
      TomlNode::Table table;
      for (const auto& [key, item] : from.as_table()) table.emplace(key, convert(item, source));
      node->value = std::move(table);
      break;
    }
    default:
      break;  // Dates and times stay Unsupported.
  }
  return node;
}

// Counts brackets and dots without regard to strings: text that this refuses wrongly would have
// to hold a hundred unbalanced brackets.
void check_depth(std::string_view text, const std::string& source) {
  int64_t line = 1;
  int depth = 0;
  int dots = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == '.') ++dots;
    if (c == '=' || c == ',' || c == ' ' || c == '\n') dots = 0;
    TORCH_CHECK(depth <= kDeepestNesting && dots <= kLongestDottedKey, "[optim_offload] ", source,
                ":", line, ": not valid settings: nested deeper than ", kDeepestNesting,
                " levels; flatten it");
    if (c == '\n') ++line;
  }
}

// toml11 3.7 reads outside of its memory when it reports a string that is no UTF-8.
void check_utf8(std::string_view text, const std::string& source) {
  const int64_t bad = find_invalid_utf8(text);
  if (bad < 0) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + bad, '\n');
  TORCH_CHECK(false, "[optim_offload] ", source, ":", line, ": not valid TOML: not UTF-8 (byte ",
              bad, " of the file); save it as UTF-8");
}

// The library's message spans lines and repeats the file's name; its first line says what is wrong.
std::string first_line(const char* what) {
  std::string text(what);
  text.resize(std::min(text.find('\n'), text.size()));
  for (const std::string_view tag : {"[error] ", "[error]"}) {
    if (text.starts_with(tag)) text.erase(0, tag.size());
  }
  return text;
}

}  // namespace

std::shared_ptr<TomlNode> parse_toml(std::string_view text, const std::string& source) {
  TORCH_CHECK(text.size() <= kLargestText, "[optim_offload] ", source, " has ", text.size(),
              " bytes; a settings file has at most ", kLargestText);
  check_utf8(text, source);
  check_depth(text, source);
  std::istringstream stream{std::string(text)};
  std::shared_ptr<TomlNode> root;
  try {
    root = convert(toml::parse(stream, source), source);
  } catch (const toml::syntax_error& error) {
    const int64_t line = error_line(error);
    TORCH_CHECK(false, "[optim_offload] ", source, line > 0 ? ":" + std::to_string(line) : "",
                ": not valid TOML: ", first_line(error.what()), "\n", error.what());
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "[optim_offload] ", source, ": not valid TOML: ", error.what());
  }
  root->line = 0;
  return root;
}

}  // namespace optim_offload
