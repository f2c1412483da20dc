#include "train/json_file.h"

#include <string>

#include "train/durable_files.h"

namespace optim_offload::train {
namespace {

constexpr uintmax_t kLargest = uintmax_t{1} << 20;  // bytes
constexpr int kDeepest = 16;

bool too_deep(const std::string& text) {
  bool deep = false;
  const auto look = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  // What is kept is thrown away as soon as it is too deep.
  const auto ignored = nlohmann::json::parse(text, look, /*allow_exceptions=*/false);
  return deep;
}

}  // namespace

nlohmann::json read_json(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > kLargest) return nlohmann::json::value_t::discarded;
  const auto text = read_file(path);
  if (too_deep(text)) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace optim_offload::train
