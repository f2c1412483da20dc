#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "transfer/order_check.h"
#include "transfer/wait_point.h"

namespace optim_offload::transfer {

/// How the simulated device behaves.
struct SimulatedDeviceOptions {
  /// How many devices there are. A tensor lies on the one that its number of elements, modulo this,
  /// says.
  int devices = 1;

  /// Each copy starts only after this delay, so that a missing wait shows.
  std::chrono::microseconds delay{0};

  /// Fill with NaN bytes: device memory that is free, slots that wait for a copy up, host memory
  /// that waits for a copy down, and whatever is used without a wait that orders it. So a use too
  /// early shows in the bits.
  bool poison = false;

  /// A wait that is left out wherever the library asks for it: for tests of the tests alone.
  std::optional<WaitPoint> without{};
};

/// While one lives, CPU parameters count as lying on a device (or on several): the state of
/// optimizers wrapped meanwhile moves between "device" and "host" memory through worker threads,
/// one for each direction of each device, with the events and waits of the CUDA side. The order of
/// all that is queued is checked beside it, see order(). One at a time in a process; it must
/// outlive the optimizers wrapped under it. For tests: it needs no GPU.
class ScopedSimulatedDevice {
 public:
  explicit ScopedSimulatedDevice(SimulatedDeviceOptions options = {});
  /// Warns of errors in the order that nobody took.
  ~ScopedSimulatedDevice();
  ScopedSimulatedDevice(const ScopedSimulatedDevice&) = delete;
  ScopedSimulatedDevice& operator=(const ScopedSimulatedDevice&) = delete;
};

/// Whether a ScopedSimulatedDevice lives, and its options.
bool simulated_device_active();
SimulatedDeviceOptions simulated_device_options();

/// What is known of the order of its work; null where none lives.
std::shared_ptr<OrderCheck> simulated_device_order();

}  // namespace optim_offload::transfer
