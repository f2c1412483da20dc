#pragma once

#include <memory>
#include <vector>

#include <torch/optim/optimizer.h>

namespace optim_offload::state {

// What an optimizer holds, as its accessors give it.
using Groups = std::vector<torch::optim::OptimizerParamGroup>;
using StateMap = ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>>;

}  // namespace optim_offload::state
