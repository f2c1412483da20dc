#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "transfer/simulated_device.h"

namespace optim_offload::testing {

/// Where a test's parameters lie.
enum class DeviceKind {
  Cpu,        ///< Plain CPU tensors: the state already rests where it should, nothing is copied.
  Simulated,  ///< CPU tensors that count as lying on a device whose copies are late and poisoned.
  Cuda,       ///< The current CUDA device.
};

/// The device of one test; the simulated one exists as long as this does.
class TestDevice {
 public:
  explicit TestDevice(DeviceKind kind,
                      std::chrono::microseconds delay = std::chrono::microseconds(200));

  DeviceKind kind() const { return kind_; }
  torch::Device device() const;

  /// Whether state must be copied to be stepped.
  bool copies() const { return kind_ != DeviceKind::Cpu; }

 private:
  DeviceKind kind_;
  std::unique_ptr<transfer::ScopedSimulatedDevice> simulated_;
};

/// How many CUDA devices can be used; 0 where there is no driver or no CUDA build.
int cuda_device_count();

/// Suffix of test names.
std::string to_string(DeviceKind kind);

}  // namespace optim_offload::testing

/// One body, which sees `TestDevice& device`, as three tests: Name_Cpu, Name_Simulated, Name_CUDA.
#define OFFLOAD_TEST(Suite, Name)                                                                 \
  static void Suite##_##Name##_body(::optim_offload::testing::TestDevice&);                       \
  TEST(Suite, Name##_Cpu) {                                                                       \
    ::optim_offload::testing::TestDevice device(::optim_offload::testing::DeviceKind::Cpu);       \
    Suite##_##Name##_body(device);                                                                \
  }                                                                                               \
  TEST(Suite, Name##_Simulated) {                                                                 \
    ::optim_offload::testing::TestDevice device(::optim_offload::testing::DeviceKind::Simulated); \
    Suite##_##Name##_body(device);                                                                \
  }                                                                                               \
  TEST(Suite, Name##_CUDA) {                                                                      \
    if (::optim_offload::testing::cuda_device_count() == 0) {                                     \
      GTEST_SKIP() << "no CUDA device";                                                           \
    }                                                                                             \
    ::optim_offload::testing::TestDevice device(::optim_offload::testing::DeviceKind::Cuda);      \
    Suite##_##Name##_body(device);                                                                \
  }                                                                                               \
  static void Suite##_##Name##_body([[maybe_unused]] ::optim_offload::testing::TestDevice& device)
