#include "support/test_device.h"

#ifdef OPTIM_OFFLOAD_CUDA
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace optim_offload::testing {

namespace {
std::optional<transfer::WaitPoint> left_out;
}  // namespace

void leave_out_wait(std::optional<transfer::WaitPoint> point) { left_out = point; }

TestDevice::TestDevice(DeviceKind kind, std::chrono::microseconds delay, int simulated_devices)
    : kind_(kind) {
  if (kind == DeviceKind::Simulated) {
    simulated_ = std::make_unique<transfer::ScopedSimulatedDevice>(transfer::SimulatedDeviceOptions{
        .devices = simulated_devices, .delay = delay, .poison = true, .without = left_out});
  }
}

torch::Device TestDevice::device() const {
  return kind_ == DeviceKind::Cuda ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
}

void TestDevice::expect_order() const {
  const auto order = transfer::simulated_device_order();
  if (order == nullptr) return;
  for (const std::string& error : order->take_errors()) ADD_FAILURE() << error;
}

void expect_copies_done() {
  const auto order = transfer::simulated_device_order();
  if (order == nullptr) return;
  EXPECT_EQ(order->bytes_in_use(transfer::OrderCheck::Side::Host), 0u)
      << "the host may touch state, but copies of that many bytes of it may still be going on";
}

int cuda_device_count() {
#ifdef OPTIM_OFFLOAD_CUDA
  return at::hasCUDA() ? static_cast<int>(c10::cuda::device_count()) : 0;
#else
  return 0;
#endif
}

std::string to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cpu:
      return "Cpu";
    case DeviceKind::Simulated:
      return "Simulated";
    case DeviceKind::Cuda:
      return "CUDA";
  }
  return "?";
}

}  // namespace optim_offload::testing
