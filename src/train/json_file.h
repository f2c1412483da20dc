#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace optim_offload::train {

/// Reads a small JSON file that this program wrote. What is no JSON, or more of it than it ever
/// writes (1 MiB, 16 levels: a deeper tree would exhaust the stack of whoever copies or prints it),
/// comes back as `is_discarded()`. Throws `c10::Error` where the file cannot be read.
nlohmann::json read_json(const std::filesystem::path& path);

}  // namespace optim_offload::train
