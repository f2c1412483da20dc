#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "bench/model.h"

namespace optim_offload::bench {

/// Everything that a checkpoint keeps of one parameter, by name; counters as 0-dim tensors. On the
/// CPU.
using SavedState = std::map<std::string, torch::Tensor>;

/// What `optimizer.save()` writes of each parameter, in the order of `parameters`; empty where it
/// writes nothing. Knows no type of state, and reads a wrapped and a plain optimizer alike.
std::vector<SavedState> saved_state(const torch::optim::Optimizer& optimizer,
                                    const NamedParameters& parameters);

/// Writes the archive of `optimizer` to nowhere and returns its bytes.
int64_t save_to_nowhere(const torch::optim::Optimizer& optimizer);

}  // namespace optim_offload::bench
