#include "memory/device_memory.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

namespace optim_offload {
namespace {

TEST(DeviceMemory, IsZeroOnACpu) {
  const auto tensor = torch::ones({1000});
  const auto memory = device_memory(torch::kCPU);
  EXPECT_EQ(memory.allocated, 0);
  EXPECT_EQ(memory.peak_reserved, 0);
  reset_peak_device_memory(torch::kCPU);
}

TEST(DeviceMemory, FollowsTheAllocator_CUDA) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  const torch::Device device(torch::kCUDA, 0);
  const auto keep =
      torch::empty({1 << 20}, torch::TensorOptions().dtype(torch::kUInt8).device(device));
  const auto before = device_memory(device);
  EXPECT_GE(before.allocated, 1 << 20);
  { const auto gone = torch::empty({8 << 20}, keep.options()); }
  EXPECT_EQ(device_memory(device).allocated, before.allocated);
  EXPECT_GE(device_memory(device).peak_allocated, before.allocated + (8 << 20));
  reset_peak_device_memory(device);
  EXPECT_EQ(device_memory(device).peak_allocated, before.allocated);
  EXPECT_GE(device_memory(device).reserved, before.allocated);
}

}  // namespace
}  // namespace optim_offload
