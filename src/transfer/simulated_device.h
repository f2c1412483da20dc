#pragma once

#include <chrono>
#include <cstdint>

namespace optim_offload::transfer {

/// How the simulated device behaves.
struct SimulatedDeviceOptions {
  /// Each copy starts only after this delay, so that a missing wait shows.
  std::chrono::microseconds delay{0};

  /// Fill freed and not yet written device memory, and host memory whose copy is pending, with NaN
  /// bytes, so that a read too early shows in the bits.
  bool poison = false;
};

/// While one lives, CPU parameters count as lying on a device: the state of optimizers wrapped
/// meanwhile moves between "device" and "host" memory through worker threads, one for each
/// direction, with the events and waits of the CUDA side. One at a time in a process; it must
/// outlive the optimizers wrapped under it. For tests: it needs no GPU.
class ScopedSimulatedDevice {
 public:
  explicit ScopedSimulatedDevice(SimulatedDeviceOptions options = {});
  ~ScopedSimulatedDevice();
  ScopedSimulatedDevice(const ScopedSimulatedDevice&) = delete;
  ScopedSimulatedDevice& operator=(const ScopedSimulatedDevice&) = delete;
};

/// Whether a ScopedSimulatedDevice lives, and its options.
bool simulated_device_active();
SimulatedDeviceOptions simulated_device_options();

}  // namespace optim_offload::transfer
