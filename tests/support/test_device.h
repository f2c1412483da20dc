#pragma once

#include <chrono>
#include <memory>
#include <optional>
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

/// The device of one test; the simulated one exists as long as this does, and fails the test where
/// its order check found something.
class TestDevice {
 public:
  explicit TestDevice(DeviceKind kind,
                      std::chrono::microseconds delay = std::chrono::microseconds(200),
                      int simulated_devices = 1);
  ~TestDevice() { expect_order(); }
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  DeviceKind kind() const { return kind_; }
  torch::Device device() const;

  /// Whether state must be copied to be stepped.
  bool copies() const { return kind_ != DeviceKind::Cpu; }

  /// Fails the test for each error that the simulated device's order check has kept.
  void expect_order() const;

 private:
  DeviceKind kind_;
  std::unique_ptr<transfer::ScopedSimulatedDevice> simulated_;
};

/// Fails the test where a copy may still read or write host memory on the simulated device, if one
/// lives. For the moments at which the host may touch state.
void expect_copies_done();

/// Leaves this wait out of every simulated device from now on, or none. For tests/without_wait.cpp.
void leave_out_wait(std::optional<transfer::WaitPoint> point);

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
