#include "transfer/simulated_device.h"

#include <atomic>

#include "error.h"

namespace optim_offload::transfer {
namespace {

std::atomic<bool> active{false};
SimulatedDeviceOptions active_options;

/// Never destroyed, as a simulated device may end after the variables of this file.
std::shared_ptr<OrderCheck>& active_order() {
  static auto* const order = new std::shared_ptr<OrderCheck>();
  return *order;
}

}  // namespace

ScopedSimulatedDevice::ScopedSimulatedDevice(SimulatedDeviceOptions options) {
  OFFLOAD_CHECK(options.devices >= 1,
                "a simulated machine needs a device (devices = ", options.devices,
                "); give at least 1");
  OFFLOAD_CHECK(!active.exchange(true), "a simulated device lives already; end its scope first");
  active_options = options;
  active_order() = std::make_shared<OrderCheck>(options.devices);
}

ScopedSimulatedDevice::~ScopedSimulatedDevice() {
  for (const std::string& error : active_order()->errors()) TORCH_WARN("[optim_offload] ", error);
  active_order().reset();
  active = false;
}

bool simulated_device_active() { return active; }

SimulatedDeviceOptions simulated_device_options() { return active_options; }

std::shared_ptr<OrderCheck> simulated_device_order() { return active_order(); }

}  // namespace optim_offload::transfer
