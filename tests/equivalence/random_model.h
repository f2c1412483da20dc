#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "equivalence/random.h"
#include "support/model.h"
#include "support/recipes.h"

namespace optim_offload::testing {

/// One parameter of a generated model, and when it gets gradients.
struct RandomParameter {
  ParamSpec spec;
  std::string second_name;  ///< Another name of the same tensor; empty if none.
  size_t group = 0;
  int64_t first_gradient = 0;   ///< No gradient before this step.
  double skip = 0;              ///< Probability that a later step has none.
  bool plain_gradient = false;  ///< The gradient is contiguous whatever the parameter's layout.
  bool sparse = false;          ///< The gradient is sparse where the optimizer takes that.
};

/// Parameters in the order of their names, with group numbers in [0, groups).
struct RandomModel {
  std::vector<RandomParameter> parameters;
  size_t groups = 1;

  Model make(torch::Device device, uint64_t seed) const;

  /// The model's names, second names included.
  torch::OrderedDict<std::string, torch::Tensor> names(const Model& model) const;

  Groups group(const Model& model) const;

  std::string describe() const;
};

RandomParameter random_parameter(Random& random, size_t number, size_t groups);
RandomModel random_model(Random& random);

/// Draws which parameters get a gradient in this step, and gives the same ones to both models; some
/// hold NaN or infinity. `sparse`: the optimizer takes sparse ones.
void random_gradients(Random& random, const RandomModel& shape, int64_t step, bool sparse,
                      Model& first, Model& second);

}  // namespace optim_offload::testing
