#pragma once

// What tests of a CUDA device share. Included only in builds with CUDA.

#include <memory>
#include <string>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "support/twins.h"

namespace optim_offload::testing {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr int64_t kMiB = int64_t{1} << 20;
/// Long enough for a step's copies to overtake what nothing makes them wait for.
constexpr int64_t kSleepCycles = 50'000'000;

inline const auto& aggregate(const c10::CachingAllocator::StatArray& stats) {
  return stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}
inline int64_t allocated() {
  return aggregate(allocator::getDeviceStats(0).allocated_bytes).current;
}
inline int64_t peak_allocated() {
  return aggregate(allocator::getDeviceStats(0).allocated_bytes).peak;
}
inline int64_t reserved() { return aggregate(allocator::getDeviceStats(0).reserved_bytes).current; }

/// `count` layers of one 1024 x 1024 fp32 matrix: 4 MiB of weights, 8 MiB of AdamW's state each.
inline std::vector<ParamSpec> large_layers(int count) {
  std::vector<ParamSpec> specs;
  for (int i = 0; i < count; ++i) {
    specs.push_back({.name = "layers." + std::to_string(i) + ".weight", .shape = {1024, 1024}});
  }
  return specs;
}

/// A model of `layers` large layers with gradients, and AdamW wrapped, in pieces of 4 MiB.
struct LargeModel {
  LargeModel(const TestDevice& device, Mode mode, int layers)
      : model(make_model(large_layers(layers), device.device())),
        wrapped(std::make_unique<CPUOffloadOptimizer>(make_base(recipe("AdamW"), {model.tensors()}),
                                                      model.parameters,
                                                      offload_options(mode, 4 * kMiB))) {
    set_gradients(model, 1);
  }
  void steps(int count) {
    for (int step = 0; step < count; ++step) wrapped->step();
  }

  Model model;
  std::unique_ptr<CPUOffloadOptimizer> wrapped;
};

#define SKIP_BELOW_DEVICES(count)                                                        \
  if (cuda_device_count() < (count)) {                                                   \
    GTEST_SKIP() << "needs " << (count) << " CUDA devices, has " << cuda_device_count(); \
  }

}  // namespace optim_offload::testing
