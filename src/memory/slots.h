#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace optim_offload::memory {

/// Device buffers that pieces use in turn. Views of them are made once and stay valid as objects;
/// their memory comes from the caching allocator on the current stream at acquire() and goes back
/// at release(), so that between steps activations can use it.
class Slots {
 public:
  explicit Slots(c10::Device device) : device_(device) {}

  /// Sets number and sizes (bytes) of the slots. Views made before are void.
  void resize(const std::vector<size_t>& bytes);

  size_t count() const { return storages_.size(); }

  /// Bytes of all slots together.
  size_t total_bytes() const;

  /// Takes memory for all slots. Throws the allocator's out-of-memory error, holding none then.
  void acquire();

  /// Gives the memory back. All work on it must be done or ordered before the current stream.
  void release() noexcept;

  std::byte* data(size_t slot) const;
  size_t bytes(size_t slot) const { return storages_[slot].nbytes(); }

  /// Whether a tensor's memory is that of any of the slots.
  bool hold(const at::Tensor& tensor) const;

  /// A tensor over slot `slot`, `offset` bytes in. May be made, but not read, without memory.
  at::Tensor view(size_t slot, size_t offset, at::IntArrayRef sizes, at::IntArrayRef strides,
                  const at::TensorOptions& options) const;

 private:
  c10::Device device_;
  std::vector<c10::Storage> storages_;
};

}  // namespace optim_offload::memory
