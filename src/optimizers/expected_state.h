#pragma once

#include <cstddef>
#include <optional>

#include <torch/optim/optimizer.h>

namespace optim_offload {

/// How many tensors of the parameter's shape and type an optimizer with these options keeps for
/// each parameter; nothing for options of a class that is not known. Only plans rest on it.
std::optional<size_t> expected_state_tensors(const torch::optim::OptimizerOptions& options);

}  // namespace optim_offload
