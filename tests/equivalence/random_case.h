#pragma once

#include <cstdint>
#include <memory>
#include <ostream>

#include "equivalence/random.h"
#include "equivalence/random_model.h"
#include "equivalence/random_recipes.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "support/test_device.h"

namespace optim_offload::testing {

/// A random model, optimizer and schedule, once plain and once wrapped.
class Case {
 public:
  /// Describes itself to `log` as it goes, so that a throw is described as well.
  Case(uint64_t seed, const TestDevice& device, std::ostream& log);
  void run();

 private:
  void wrap(std::unique_ptr<torch::optim::Optimizer> base);

  /// A new plain optimizer that goes on from the wrapped one's archive.
  void plain_from_wrapped();

  /// One of the things that happen between steps.
  void disturb();
  void change_learning_rate();
  void add_group();
  void step_with_closure();
  void change_weights();

  /// As a user may: writes into a parameter's state, or lets it start anew.
  void edit_state();

  /// A call of the step fails; the plain one goes on from where that leaves the wrapped one.
  void step_that_fails();

  torch::optim::Optimizer* wrapped() { return wrapped_.get(); }

  std::ostream& log_;
  Random random_;
  torch::Device device_;
  RandomRecipe recipe_;
  RandomModel shape_;
  uint64_t value_seed_;
  Model plain_model_;
  Model wrapped_model_;
  std::unique_ptr<torch::optim::Optimizer> plain_;
  std::unique_ptr<CPUOffloadOptimizer> wrapped_;
};

}  // namespace optim_offload::testing
