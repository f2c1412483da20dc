#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <utility>
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

  /// Aligned bytes of the tensors that will be allocated from now on, in order; only asked for
  /// where a new slab is due. Slabs are then cut to fit them, and the next one is made in the
  /// background.
  using Forecast = std::function<std::vector<size_t>()>;
  void expect(Forecast forecast) {
    forecast_ = std::move(forecast);
    allocated_since_ = 0;
  }

  /// A CPU tensor of the given type, sizes and strides that owns a block of its own, aligned to
  /// kAlignment. Content is undefined.
  at::Tensor allocate(at::IntArrayRef sizes, at::IntArrayRef strides,
                      const at::TensorOptions& options, LockFor lock_for);

  /// Whether the memory is of a block.
  bool owns(const void* data) const;

  /// Forgets slabs that hold nothing and the one made in advance. Called when all is placed.
  void trim() noexcept;

  size_t locked_bytes() const;
  size_t pageable_bytes() const;

 private:
  struct Block {
    std::shared_ptr<Slab> slab;
    std::byte* data;
  };
  Block take(size_t bytes, LockFor lock_for);
  std::shared_ptr<Slab> new_slab(size_t bytes, LockFor lock_for);

  PinMemory pin_;
  Forecast forecast_;
  size_t allocated_since_ = 0;  // tensors, since the forecast was given
  std::vector<std::shared_ptr<Slab>> slabs_;
  std::future<std::shared_ptr<Slab>> next_;
  LockFor next_lock_for_ = LockFor::Nobody;
};

/// Bytes from a strided tensor's first element to the end of its last.
size_t extent_bytes(at::IntArrayRef sizes, at::IntArrayRef strides, size_t itemsize);
size_t extent_bytes(const at::Tensor& tensor);

}  // namespace optim_offload::memory
