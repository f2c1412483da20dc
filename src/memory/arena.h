#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "memory/host_region.h"

namespace optim_offload::memory {

class Slab;

/// Host memory in which state rests: blocks of slabs, handed out in order, so that what is
/// allocated one after the other lies side by side and travels as one copy. A block goes back when
/// the tensor that owns it dies, in whatever thread, also after the arena's end; a slab when its
/// last block and the arena have let go of it. The arena itself: one thread at a time.
class Arena {
 public:
  explicit Arena(PinMemory pin) : pin_(pin) {}

  /// Says how much will be allocated from now on, all told. New slabs are made no larger than
  /// that, and the one after the next already in the background.
  void expect(size_t bytes) { expected_ = bytes; }

  /// A CPU tensor of the given type, sizes and strides that owns a block of its own, aligned to
  /// kAlignment. Content is undefined.
  at::Tensor allocate(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
                      LockFor lock_for);

  /// Forgets slabs that hold nothing and the one made in advance. Called when all is placed.
  void trim();

  size_t locked_bytes() const;
  size_t pageable_bytes() const;

 private:
  std::shared_ptr<Slab> slab_with(size_t bytes, LockFor lock_for);

  PinMemory pin_;
  size_t expected_ = 0;
  std::vector<std::shared_ptr<Slab>> slabs_;
  std::future<std::shared_ptr<Slab>> next_;
  LockFor next_lock_for_ = LockFor::Nobody;
};

/// Bytes from a strided tensor's first element to the end of its last.
size_t extent_bytes(at::IntArrayRef sizes, at::IntArrayRef strides, size_t itemsize);
size_t extent_bytes(const at::Tensor& tensor);

}  // namespace optim_offload::memory
