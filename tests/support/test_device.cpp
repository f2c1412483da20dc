#include "support/test_device.h"

#ifdef OPTIM_OFFLOAD_CUDA
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace optim_offload::testing {

TestDevice::TestDevice(DeviceKind kind, std::chrono::microseconds delay) : kind_(kind) {
  if (kind == DeviceKind::Simulated) {
    simulated_ = std::make_unique<transfer::ScopedSimulatedDevice>(
        transfer::SimulatedDeviceOptions{.delay = delay, .poison = true});
  }
}

torch::Device TestDevice::device() const {
  return kind_ == DeviceKind::Cuda ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
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
