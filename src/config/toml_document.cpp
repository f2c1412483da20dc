#include <c10/util/Exception.h>
#include <c10/util/error.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "config/toml_table.h"

namespace optim_offload {
namespace {

constexpr const char* kOverrideSource = "--set";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_bare_key(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
}

// Throws where a part is no bare key: quoted keys would be needed for names that no setting has.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    TORCH_CHECK(is_bare_key(parts.back()), "[optim_offload] the key \"", path,
                "\" is no dotted name; write it as in trainer.optim.lr");
    begin = end + 1;
  }
  return parts;
}

// Whatever is not one TOML value is a string.
std::shared_ptr<TomlNode> parse_override_value(std::string_view text) {
  try {
    const auto parsed = parse_toml("value = " + std::string(text), kOverrideSource);
    if (parsed->table()->size() == 1 && parsed->table()->begin()->first == "value") {
      return parsed->table()->begin()->second;
    }
  } catch (const c10::Error&) {
  }
  auto node = std::make_shared<TomlNode>();
  node->value = std::string(text);
  node->source = kOverrideSource;
  return node;
}

// A line within an override's own text would only puzzle.
void drop_lines(TomlNode& node) {
  node.line = 0;
  if (auto* table = node.table()) {
    for (auto& [key, item] : *table) drop_lines(*item);
  } else if (auto* array = std::get_if<TomlNode::Array>(&node.value)) {
    for (auto& item : *array) drop_lines(*item);
  }
}

void reject_below(const TomlTable& table) {
  table.reject_unknown_keys();
  for (const std::string& key : table.keys()) {
    TomlTable mutable_view = table;
    if (mutable_view.find(key)->table()) reject_below(mutable_view.table(key));
  }
}

}  // namespace

TomlDocument::TomlDocument(std::string name, std::shared_ptr<TomlNode> root)
    : name_(std::move(name)), root_(std::move(root)) {}

TomlDocument TomlDocument::load(const std::filesystem::path& path) {
  std::error_code error;
  TORCH_CHECK(std::filesystem::exists(path, error), "[optim_offload] there is no settings file ",
              path.string(), error ? " (" + error.message() + ")" : "",
              "; give the path of a TOML file");
  TORCH_CHECK(!std::filesystem::is_directory(path, error), "[optim_offload] ", path.string(),
              " is a folder; give the path of a TOML file");
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file.good(), "[optim_offload] cannot open ", path.string(), " (",
              c10::utils::str_error(errno), "); check its permissions");
  std::ostringstream text;
  text << file.rdbuf();
  TORCH_CHECK(!file.bad(), "[optim_offload] cannot read ", path.string(), " (",
              c10::utils::str_error(errno), "); check the file");
  return parse(text.str(), path.string());
}

TomlDocument TomlDocument::parse(std::string_view text, const std::string& name) {
  return TomlDocument(name, parse_toml(text, name));
}

void TomlDocument::apply_override(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  TORCH_CHECK(equals != std::string_view::npos, "[optim_offload] ", kOverrideSource, " \"",
              assignment, "\" has no '='; write it as in trainer.optim.lr=3e-4");
  const std::string_view path = trimmed(assignment.substr(0, equals));
  const auto parts = split_path(path);
  TomlNode* node = root_.get();
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    auto& child = (*node->table())[std::string(parts[i])];
    if (!child) {
      child = std::make_shared<TomlNode>();
      child->value = TomlNode::Table();
      child->source = kOverrideSource;
    }
    TORCH_CHECK(child->table(), "[optim_offload] ", kOverrideSource, " ", path, ": ", parts[i],
                " is ", child->type_name(), " (", child->where(), "), no table; name another key");
    child->absent = false;
    node = child.get();
  }
  auto& place = (*node->table())[std::string(parts.back())];
  TORCH_CHECK(!place || !place->table(), "[optim_offload] ", kOverrideSource, " ", path,
              " is a table; name a key within it, as in trainer.optim.lr=3e-4");
  place = parse_override_value(trimmed(assignment.substr(equals + 1)));
  drop_lines(*place);
}

TomlTable TomlDocument::root() const { return TomlTable("", root_); }

TomlTable TomlDocument::table(std::string_view path) const {
  TomlTable table = root();
  for (const std::string_view part : split_path(path)) table = table.table(part);
  return table;
}

void TomlDocument::reject_unknown_keys() const { reject_below(root()); }

}  // namespace optim_offload
