#pragma once

#include <cstddef>

namespace optim_offload {

/// Bytes to which records, tensors in them and views in slots are aligned: what the caching
/// allocator gives at least, so that kernels choose the same code for a slot as for an own tensor.
inline constexpr size_t kAlignment = 256;

constexpr size_t align_up(size_t bytes, size_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace optim_offload
