#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace optim_offload::transfer {

/// The device that a tensor counts as lying on: its own; while a ScopedSimulatedDevice of several
/// devices lives, the one of them that a CPU tensor was dealt to.
c10::Device device_of(const at::Tensor& tensor);

/// The device number `number` of a simulated machine. The first is the CPU itself; for the others
/// stands a device type that nothing else uses here, as LibTorch knows only one CPU.
c10::Device simulated_device(int number);
bool is_simulated(c10::Device device);

/// Where memory for `device` is allocated: on it, or on the CPU for a simulated one.
c10::Device memory_of(c10::Device device);

}  // namespace optim_offload::transfer
