#pragma once

#include <c10/core/Device.h>

#include "memory/device_memory.h"

namespace optim_offload {

/// device_memory() of a CUDA device; a device without an index means the current one.
DeviceMemory cuda_device_memory(c10::Device device);

/// reset_peak_device_memory() of a CUDA device.
void reset_peak_cuda_device_memory(c10::Device device);

}  // namespace optim_offload
