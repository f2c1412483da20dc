#pragma once

#include <cstdint>

namespace optim_offload {

// What the constructor and the reader of settings accept.
inline constexpr int64_t kSmallestPiece = 1024;  // bytes
inline constexpr int64_t kFewestSlots = 2;
inline constexpr int64_t kMostSlots = 64;

}  // namespace optim_offload
