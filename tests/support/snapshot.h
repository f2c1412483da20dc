#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

namespace optim_offload::testing {

/// What one state or options object writes into an archive, by key.
using Fields = std::map<std::string, c10::IValue>;

/// Those of all groups, in order.
std::vector<torch::Tensor> all_parameters(const torch::optim::Optimizer& optimizer);

/// Everything an optimizer holds, in the order of its groups. A parameter without state has none.
struct Snapshot {
  std::vector<Fields> options;             ///< Of each group.
  std::vector<std::vector<Fields>> state;  ///< Of each parameter of each group.
};

/// Reads groups and state out of the living objects, through their own serialize(). Tensors are
/// copies on the CPU.
Snapshot snapshot(const torch::optim::Optimizer& optimizer);

/// Reads what the optimizer's save() writes, with the groups' order of the archive itself.
Snapshot saved_snapshot(const torch::optim::Optimizer& optimizer);

/// Bytes of all tensors in the state.
int64_t state_bytes(const torch::optim::Optimizer& optimizer);

/// An optimizer's archive, and how to read it into another. The wrapper writes CPU tensors and
/// takes any; a plain optimizer must have its tensors read to the parameters' `device`.
std::string saved(const torch::optim::Optimizer& optimizer);
void load_saved(torch::optim::Optimizer& optimizer, const std::string& archive,
                std::optional<torch::Device> device = std::nullopt);

}  // namespace optim_offload::testing
