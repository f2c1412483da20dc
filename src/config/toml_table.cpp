#include "config/toml_table.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/nearest_name.h"

namespace optim_offload {
namespace {

[[noreturn]] void fail_at(const TomlNode& node, const std::string& name, const std::string& what) {
  TORCH_CHECK(false, "[optim_offload] ", node.where(), ": ", name, " = ", node.text(), " ", what);
}

std::string wanted(const std::string& type, const std::string& says) {
  return says.empty() ? type : type + " " + says;
}

int64_t to_int(const TomlNode& node, const std::string& name, const TomlCheck<int64_t>& check) {
  const auto* value = std::get_if<int64_t>(&node.value);
  if (!value) {
    fail_at(node, name, "is " + node.type_name() + "; must be " + wanted("an integer", check.says));
  }
  // The parser of 3.x gives the limit for whatever is beyond it.
  using Limits = std::numeric_limits<int64_t>;
  if (*value == Limits::max() || *value == Limits::min()) {
    fail_at(node, name, "is too large; must be " + wanted("an integer", check.says));
  }
  if (check.holds && !check.holds(*value)) fail_at(node, name, "must be " + check.says);
  return *value;
}

double to_float(const TomlNode& node, const std::string& name, const TomlCheck<double>& check) {
  double value = 0;
  if (const auto* number = std::get_if<double>(&node.value)) {
    value = *number;
    // The parser of 3.x gives the largest number for 1e999.
    if (!std::isfinite(value) || std::abs(value) == std::numeric_limits<double>::max()) {
      fail_at(node, name, "is not finite; must be " + wanted("a number", check.says));
    }
  } else if (std::holds_alternative<int64_t>(node.value)) {
    value = static_cast<double>(to_int(node, name, {{}, check.says}));
  } else {
    fail_at(node, name, "is " + node.type_name() + "; must be " + wanted("a number", check.says));
  }
  if (check.holds && !check.holds(value)) fail_at(node, name, "must be " + check.says);
  return value;
}

bool to_bool(const TomlNode& node, const std::string& name) {
  const auto* value = std::get_if<bool>(&node.value);
  if (!value) fail_at(node, name, "is " + node.type_name() + "; must be true or false");
  return *value;
}

std::string to_string(const TomlNode& node, const std::string& name,
                      const std::vector<std::string>& choices) {
  const std::string says = choices.empty() ? "" : "one of " + quoted_list(choices);
  const auto* value = std::get_if<std::string>(&node.value);
  if (!value) {
    fail_at(node, name,
            "is " + node.type_name() + "; must be " + (says.empty() ? "a string" : says));
  }
  if (!choices.empty() && std::find(choices.begin(), choices.end(), *value) == choices.end()) {
    const std::string near = nearest_name(*value, choices);
    fail_at(node, name,
            "must be " + says + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return *value;
}

const TomlNode::Array& to_array(const TomlNode& node, std::string_view name, std::string_view of) {
  const auto* array = std::get_if<TomlNode::Array>(&node.value);
  if (!array) {
    fail_at(node, std::string(name),
            "is " + node.type_name() + "; must be an array of " + std::string(of));
  }
  return *array;
}

}  // namespace

TomlTable::TomlTable(std::string path, std::shared_ptr<TomlNode> node)
    : path_(std::move(path)), node_(std::move(node)) {}

std::string TomlTable::full_name(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

bool TomlTable::has(std::string_view key) const {
  const auto it = node_->table()->find(key);
  return it != node_->table()->end() && !it->second->absent;
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, node] : *node_->table()) {
    if (!node->absent) out.push_back(key);
  }
  return out;
}

const TomlNode* TomlTable::find(std::string_view key) {
  node_->asked.emplace(key);
  return has(key) ? node_->table()->find(key)->second.get() : nullptr;
}

const TomlNode* TomlTable::require(std::string_view key, std::string_view type) {
  const TomlNode* node = find(key);
  TORCH_CHECK(node, "[optim_offload] ", node_->where(), ": ", full_name(key), " is missing; set ",
              "it to ", type);
  return node;
}

int64_t TomlTable::get_int(std::string_view key, int64_t fallback,
                           const TomlCheck<int64_t>& check) {
  const TomlNode* node = find(key);
  return node ? to_int(*node, full_name(key), check) : fallback;
}

int64_t TomlTable::require_int(std::string_view key, const TomlCheck<int64_t>& check) {
  return to_int(*require(key, wanted("an integer", check.says)), full_name(key), check);
}

double TomlTable::get_float(std::string_view key, double fallback, const TomlCheck<double>& check) {
  const TomlNode* node = find(key);
  return node ? to_float(*node, full_name(key), check) : fallback;
}

double TomlTable::require_float(std::string_view key, const TomlCheck<double>& check) {
  return to_float(*require(key, wanted("a number", check.says)), full_name(key), check);
}

bool TomlTable::get_bool(std::string_view key, bool fallback) {
  const TomlNode* node = find(key);
  return node ? to_bool(*node, full_name(key)) : fallback;
}

bool TomlTable::require_bool(std::string_view key) {
  return to_bool(*require(key, "true or false"), full_name(key));
}

std::string TomlTable::get_string(std::string_view key, std::string fallback,
                                  const std::vector<std::string>& choices) {
  const TomlNode* node = find(key);
  return node ? to_string(*node, full_name(key), choices) : std::move(fallback);
}

std::string TomlTable::require_string(std::string_view key,
                                      const std::vector<std::string>& choices) {
  const std::string type = choices.empty() ? "a string" : "one of " + quoted_list(choices);
  return to_string(*require(key, type), full_name(key), choices);
}

std::vector<double> TomlTable::get_floats(std::string_view key, std::vector<double> fallback,
                                          const TomlCheck<double>& check) {
  const TomlNode* node = find(key);
  if (!node) return fallback;
  const std::string of = wanted(std::to_string(fallback.size()) + " numbers", check.says);
  const auto& array = to_array(*node, full_name(key), of);
  if (array.size() != fallback.size()) fail(key, "must be an array of " + of);
  for (size_t i = 0; i < array.size(); ++i) {
    fallback[i] = to_float(*array[i], full_name(key) + "[" + std::to_string(i) + "]", check);
  }
  return fallback;
}

std::vector<int64_t> TomlTable::get_ints(std::string_view key, std::vector<int64_t> fallback,
                                         const TomlCheck<int64_t>& check) {
  const TomlNode* node = find(key);
  if (!node) return fallback;
  std::vector<int64_t> out;
  for (const auto& item : to_array(*node, full_name(key), wanted("integers", check.says))) {
    const std::string index = "[" + std::to_string(out.size()) + "]";
    out.push_back(to_int(*item, full_name(key) + index, check));
  }
  return out;
}

std::vector<std::string> TomlTable::get_strings(std::string_view key,
                                                std::vector<std::string> fallback) {
  const TomlNode* node = find(key);
  if (!node) return fallback;
  std::vector<std::string> out;
  for (const auto& item : to_array(*node, full_name(key), "strings")) {
    out.push_back(to_string(*item, full_name(key) + "[" + std::to_string(out.size()) + "]", {}));
  }
  return out;
}

TomlTable TomlTable::table(std::string_view key) {
  node_->asked.emplace(key);
  auto& tables = *node_->table();
  auto it = tables.find(key);
  if (it == tables.end()) {
    auto node = std::make_shared<TomlNode>();
    node->value = TomlNode::Table();
    node->source = node_->source;
    node->absent = true;
    it = tables.emplace(std::string(key), std::move(node)).first;
  }
  if (!it->second->table()) {
    fail(key, "is " + it->second->type_name() + "; must be a table, [" + full_name(key) + "]");
  }
  return TomlTable(full_name(key), it->second);
}

void TomlTable::fail(std::string_view key, const std::string& reason) const {
  const auto it = node_->table()->find(key);
  if (it != node_->table()->end() && !it->second->absent) {
    fail_at(*it->second, full_name(key), reason);
  }
  TORCH_CHECK(false, "[optim_offload] ", node_->where(), ": ", full_name(key), " (not set) ",
              reason);
}

void TomlTable::reject_unknown_keys(std::string_view prefix, std::string_view context) const {
  const TomlNode* first = nullptr;
  std::string first_key;
  for (const auto& [key, node] : *node_->table()) {
    if (node->absent || !key.starts_with(prefix) || node_->asked.contains(key)) continue;
    if (!first || node->line < first->line) {
      first = node.get();
      first_key = key;
    }
  }
  if (!first) return;
  std::vector<std::string> valid;
  for (const std::string& key : node_->asked) {
    if (key.starts_with(prefix)) valid.push_back(key);
  }
  const std::string near = nearest_name(first_key, valid);
  TORCH_CHECK(
      false, "[optim_offload] ", first->where(), ": unknown key ", full_name(first_key), " = ",
      first->text(), context.empty() ? "" : " (" + std::string(context) + ")", "; ",
      near.empty() ? "" : "did you mean \"" + near + "\"? ",
      valid.empty() ? "no key is valid here; remove it" : "valid keys are " + quoted_list(valid));
}

}  // namespace optim_offload
