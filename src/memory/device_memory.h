#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace optim_offload {

/// What torch's caching allocator holds on one device, in bytes. Peaks are since the process
/// began or reset_peak_device_memory().
struct DeviceMemory {
  int64_t allocated = 0;  ///< In tensors.
  int64_t peak_allocated = 0;
  int64_t reserved = 0;  ///< Taken from the driver, in tensors or cached.
  int64_t peak_reserved = 0;
};

/// The figures of `device`; all zero for a CPU, in a build without CUDA, and before the process
/// first used the device. Queues nothing on any stream and waits for nothing.
DeviceMemory device_memory(c10::Device device);

/// Lets the peaks of `device` start from what is held now. Nothing for a CPU.
void reset_peak_device_memory(c10::Device device);

}  // namespace optim_offload
