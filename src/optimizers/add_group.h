#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace optim_offload {

/// Whether the dynamic type of `options` is one of LibTorch's own optimizers'.
bool is_libtorch_options(const torch::optim::OptimizerOptions& options);

/// `optimizer.Optimizer::add_param_group(group)`, after which the new group has its own options.
///
/// Some versions of LibTorch merge a group's options with the defaults and, knowing only their own
/// types, put the defaults in the place of all others.
void add_group_keeping_options(torch::optim::Optimizer& optimizer,
                               const torch::optim::OptimizerParamGroup& group);

/// The same repair for the groups that the constructor of `Optimizer` has added.
void keep_group_options(torch::optim::Optimizer& optimizer,
                        const std::vector<torch::optim::OptimizerParamGroup>& groups);

}  // namespace optim_offload
