#include "memory/cuda_device_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace optim_offload {
namespace {

// The allocator knows a device only once the process has used it, and throws before.
bool known(c10::Device device) {
  return c10::cuda::device_count() > 0 && c10::cuda::CUDACachingAllocator::get()->initialized() &&
         c10::cuda::hasPrimaryContext(device.index());
}

c10::Device with_index(c10::Device device) {
  return device.has_index() || c10::cuda::device_count() == 0
             ? device
             : c10::Device(c10::DeviceType::CUDA, c10::cuda::current_device());
}

}  // namespace

DeviceMemory cuda_device_memory(c10::Device device) {
  device = with_index(device);
  if (!known(device)) return {};
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto& allocated = stats.allocated_bytes[all];
  const auto& reserved = stats.reserved_bytes[all];
  return {.allocated = allocated.current,
          .peak_allocated = allocated.peak,
          .reserved = reserved.current,
          .peak_reserved = reserved.peak};
}

void reset_peak_cuda_device_memory(c10::Device device) {
  device = with_index(device);
  if (known(device)) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

}  // namespace optim_offload
