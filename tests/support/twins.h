#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "optim_offload/cpu_offload_optimizer.h"
#include "support/compare.h"
#include "support/model.h"
#include "support/recipes.h"
#include "support/test_device.h"

namespace optim_offload::testing {

/// Cuts a model's tensors into groups; by default one group holds all.
using Grouping = std::function<Groups(Model&)>;

/// Parameters at even positions and those at odd positions, so that each group is in every chunk.
Groups even_and_odd(Model& model);

/// Two equal models: one with the plain optimizer, one with the same optimizer wrapped.
class Twins {
 public:
  Twins(const TestDevice& device, std::vector<ParamSpec> specs, const Recipe& recipe,
        OffloadOptions options, Grouping grouping = nullptr, uint64_t seed = 1);

  /// New gradients for both models, then a step of both.
  void step(const GradientFilter& filter = nullptr);
  void steps(int count, const GradientFilter& filter = nullptr);

  /// New gradients for both models, without a step.
  void gradients(const GradientFilter& filter = nullptr);

  /// Parameters, options and state agree in all bits.
  ::testing::AssertionResult same() const;

  /// A new plain optimizer over a copy of the wrapped twin's present parameters, with the wrapped
  /// twin's archive loaded: where plain LibTorch would go on from here.
  void restart_plain_from_wrapped();

  /// Saves the wrapped twin, wraps a new base over the same parameters and loads the archive into
  /// it, as a run that is resumed.
  void resume(OffloadOptions options);

  /// Puts the wrapper away and wraps a new base over the same parameters, without state.
  void rewrap_empty(OffloadOptions options);

  Model plain_model;
  Model wrapped_model;
  std::unique_ptr<torch::optim::Optimizer> plain;
  std::unique_ptr<CPUOffloadOptimizer> wrapped;

  /// Another thread steps on the same device, so that copies of its own may go on.
  bool device_is_shared = false;

 private:
  torch::Device device_;
  std::vector<ParamSpec> specs_;
  Recipe recipe_;
  Grouping grouping_;
  uint64_t seed_;
  uint64_t round_ = 0;
};

}  // namespace optim_offload::testing
