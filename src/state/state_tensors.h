#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

namespace optim_offload::state {

/// A tensor found in a parameter's state, under the name that its serialize() gave it.
struct FoundTensor {
  std::string name;
  at::Tensor tensor;  ///< Shares the TensorImpl with the state: set_data() on it moves the state's.
};

/// Finds all tensors in `state`, of any class, in the order in which it serializes them. Tensors in
/// lists, tuples, dictionaries and nested archives are found too; undefined ones are left out.
///
/// Works through `state.serialize(OutputArchive&)`. Throws where the class does not implement it,
/// naming the class and what to implement.
std::vector<FoundTensor> find_state_tensors(const torch::optim::OptimizerParamState& state);

/// A number, text or tensor that serialize() wrote.
struct WrittenValue {
  std::string name;
  c10::IValue value;  ///< A tensor is the very one that was written.
};

/// All that `state` writes, in order. Throws as find_state_tensors() does.
std::vector<WrittenValue> written_values(const torch::optim::OptimizerParamState& state);

/// All that `options` would save, in order; empty where the class does not implement serialize().
std::vector<WrittenValue> written_values(const torch::optim::OptimizerOptions& options);

/// What `options` would save, as text that differs when any value does; empty where the class
/// does not implement serialize().
std::string describe_options(const torch::optim::OptimizerOptions& options);

/// Checks once that this LibTorch keeps a written tensor's identity in the archive. Throws where it
/// does not, as then no state could be found.
void check_archive_access();

}  // namespace optim_offload::state
