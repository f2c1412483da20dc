#include "plan/chunk.h"

#include <algorithm>
#include <map>
#include <regex>
#include <utility>

#include "error.h"

namespace optim_offload::plan {
namespace {

std::regex compile(const std::string& pattern) {
  OFFLOAD_CHECK(pattern.size() <= kLongestPattern, "layer_pattern is too long (", pattern.size(),
                " characters); give at most ", kLongestPattern);
  std::regex regex;
  try {
    regex = std::regex(pattern);
  } catch (const std::regex_error& error) {
    OFFLOAD_CHECK(false, "layer_pattern is not a regular expression (\"", pattern,
                  "\": ", error.what(),
                  "); write an ECMAScript one, such as \"layers\\.(\\d+)\\.\"");
  }
  OFFLOAD_CHECK(regex.mark_count() >= 1, "layer_pattern captures no layer number (\"", pattern,
                "\"); put the number in a group, such as \"layers\\.(\\d+)\\.\"");
  return regex;
}

std::string without_trailing_dot(std::string text) {
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::vector<Chunk> plan_chunks(const std::vector<NamedParam>& params, const std::string& pattern) {
  const std::regex regex = compile(pattern);
  std::vector<Chunk> layers;
  std::vector<Chunk> misc;
  std::map<std::pair<std::string, std::string>, size_t> layer_index;  // by key and device
  std::map<std::string, size_t> misc_index;

  for (size_t i = 0; i < params.size(); ++i) {
    const auto& [name, device] = params[i];
    std::smatch match;
    const auto end = name.begin() + static_cast<ptrdiff_t>(std::min(name.size(), kLongestName));
    if (std::regex_search(name.begin(), end, match, regex)) {
      const std::string key = match.prefix().str() + match.str();
      const auto [it, fresh] = layer_index.try_emplace({key, device.str()}, layers.size());
      if (fresh) layers.push_back({without_trailing_dot(key), device, {}});
      layers[it->second].params.push_back(i);
    } else {
      const auto [it, fresh] = misc_index.try_emplace(device.str(), misc.size());
      if (fresh) misc.push_back({"misc", device, {}});
      misc[it->second].params.push_back(i);
    }
  }
  layers.insert(layers.end(), std::make_move_iterator(misc.begin()),
                std::make_move_iterator(misc.end()));
  return layers;
}

}  // namespace optim_offload::plan
