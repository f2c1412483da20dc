#include "memory/device_memory.h"

#ifdef OPTIM_OFFLOAD_CUDA
#include "memory/cuda_device_memory.h"
#endif

namespace optim_offload {

DeviceMemory device_memory([[maybe_unused]] c10::Device device) {
#ifdef OPTIM_OFFLOAD_CUDA
  if (device.is_cuda()) return cuda_device_memory(device);
#endif
  return {};
}

void reset_peak_device_memory([[maybe_unused]] c10::Device device) {
#ifdef OPTIM_OFFLOAD_CUDA
  if (device.is_cuda()) reset_peak_cuda_device_memory(device);
#endif
}

}  // namespace optim_offload
