#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "state/optimizer_data.h"
#include "state/registry.h"
#include "state/state_tensors.h"

namespace optim_offload::verify {

using state::Groups;
using Values = std::vector<state::WrittenValue>;

/// What a step leaves; all tensors on the host.
struct Outcome {
  std::vector<at::Tensor> params;             ///< Of each member.
  std::vector<at::Tensor> grads;              ///< Of each member; undefined where it has none.
  std::vector<std::optional<Values>> states;  ///< Of each member; none where it has no state.
  std::vector<Values> options;                ///< Of each group.
  at::Tensor loss;
};

/// Lets `base`, whose groups and state are empty, do a plain step on copies of the parameters,
/// their gradients, the groups' options and the state, as they are before the wrapper's step.
/// Nothing else changes: neither the originals nor the random generators. Needs the memory of those
/// copies on the parameters' devices. A throw of the base comes through, with a line on what it
/// means.
Outcome plain_step(torch::optim::Optimizer& base, const state::Registry& registry,
                   const Groups& groups, const state::StateMap& states,
                   const torch::optim::Optimizer::LossClosure& closure);

/// Throws where what the wrapper's step number `step` left differs from `expected` in any bit,
/// naming the first that does.
void check_same(const Outcome& expected, const state::Registry& registry, const Groups& groups,
                const state::StateMap& states, const at::Tensor& loss, int64_t step);

}  // namespace optim_offload::verify
