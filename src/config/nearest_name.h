#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace optim_offload {

/// The one of `names` that `typed` was likely meant to be, or "" where none is near: at most a
/// third of its letters changed, and at least one may be.
std::string nearest_name(std::string_view typed, const std::vector<std::string>& names);

/// `"sgd", "adam", "adamw"`, for messages.
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace optim_offload
