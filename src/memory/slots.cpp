#include "memory/slots.h"

#include <cstring>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "fault.h"
#include "transfer/simulated_device.h"

namespace optim_offload::memory {
namespace {

/// On a simulated device, NaN bytes in memory that nobody may read.
void poison(const c10::Storage& storage) {
  if (!storage.device().is_cpu() || !transfer::simulated_device_active()) return;
  if (!transfer::simulated_device_options().poison || storage.nbytes() == 0) return;
  std::memset(storage.mutable_data(), 0xff, storage.nbytes());
}

}  // namespace

void Slots::resize(const std::vector<size_t>& bytes) {
  storages_.clear();
  for (const size_t size : bytes) {
    storages_.emplace_back(c10::Storage::use_byte_size_t{}, static_cast<int64_t>(size),
                           at::DataPtr(nullptr, device_), /*allocator=*/nullptr,
                           /*resizable=*/false);
  }
}

size_t Slots::total_bytes() const {
  size_t bytes = 0;
  for (const auto& storage : storages_) bytes += storage.nbytes();
  return bytes;
}

void Slots::acquire() {
  const c10::DeviceGuard guard(device_);
  c10::Allocator* allocator = c10::GetAllocator(device_.type());
  try {
    for (auto& storage : storages_) {
      TORCH_CHECK_WITH(OutOfMemoryError, !fault_due(FaultSite::SlotMemory),
                       "out of memory on purpose, in a test (", storage.nbytes(), " bytes)");
      storage.set_data_ptr_noswap(allocator->allocate(storage.nbytes()));
      poison(storage);
    }
  } catch (...) {
    release();
    throw;
  }
}

void Slots::release() noexcept {
  for (auto& storage : storages_) {
    if (storage.data() == nullptr) continue;
    poison(storage);
    storage.set_data_ptr_noswap(at::DataPtr(nullptr, device_));
  }
}

std::byte* Slots::data(size_t slot) const {
  return static_cast<std::byte*>(storages_[slot].mutable_data());
}

bool Slots::hold(const at::Tensor& tensor) const {
  // The slot has its own hold on it.
  if (!tensor.has_storage() || tensor.storage().use_count() == 1) return false;
  return std::any_of(storages_.begin(), storages_.end(), [&](const c10::Storage& storage) {
    return storage.is_alias_of(tensor.storage());
  });
}

at::Tensor Slots::view(size_t slot, size_t offset, at::IntArrayRef sizes, at::IntArrayRef strides,
                       const at::TensorOptions& options) const {
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
  const auto device_options = options.device(device_).requires_grad(false);
  const auto element = static_cast<int64_t>(offset / device_options.dtype().itemsize());
  return at::empty({0}, device_options).set_(storages_[slot], element, sizes, strides);
}

}  // namespace optim_offload::memory
