#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "optim_offload/options.h"

namespace optim_offload::testing {

using Groups = std::vector<std::vector<torch::Tensor>>;

/// A way to make one kind of optimizer, with options that use all of its state tensors.
struct Recipe {
  std::string name;
  std::function<std::unique_ptr<torch::optim::Optimizer>(const Groups&)> make;
  bool element_wise = false;  ///< Large parameters are cut into tiles.
  bool grows = true;          ///< Takes new parameters after construction (Adagrad does not).
};

/// SGD, Adam, AdamW, RMSprop, Adagrad, Muon, FusedAdamW, ElementwiseBlend, NormBlend.
const std::vector<Recipe>& recipes();
const Recipe& recipe(const std::string& name);

/// Makes a user's own optimizer of class T.
template <typename T>
Recipe recipe_of(std::string name, bool element_wise = false);

/// Makes the optimizer; group g gets (1 + g / 2) times the recipe's learning rate, so that groups
/// differ.
std::unique_ptr<torch::optim::Optimizer> make_base(const Recipe& recipe, const Groups& groups);

enum class Mode { AllAtOnce, Sequential, Streamed };
constexpr Mode kModes[] = {Mode::AllAtOnce, Mode::Sequential, Mode::Streamed};
constexpr Mode kChunkedModes[] = {Mode::Sequential, Mode::Streamed};

std::string to_string(Mode mode);

/// Options of that mode, with pieces so small that every test has many.
OffloadOptions offload_options(Mode mode, int64_t piece_bytes = 2048, int64_t slots = 3);

template <typename T>
Recipe recipe_of(std::string name, bool element_wise) {
  return {.name = std::move(name),
          .make =
              [](const Groups& groups) {
                std::vector<torch::optim::OptimizerParamGroup> list(groups.begin(), groups.end());
                return std::make_unique<T>(list);
              },
          .element_wise = element_wise};
}

}  // namespace optim_offload::testing
