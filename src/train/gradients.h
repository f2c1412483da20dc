#pragma once

#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace optim_offload::train {

/// The module's parameters, each once: a tied tensor has two names and must be clipped and counted
/// once.
std::vector<torch::Tensor> unique_parameters(const torch::nn::Module& module);

/// Scales the gradients so that the 2-norm over all of them is at most `max_norm`; what
/// torch::nn::utils::clip_grad_norm_ does, but with the norm left on the device, so that the
/// host does not wait. `max_norm` 0 only measures. Returns the norm before clipping (0-dim, fp32,
/// on the parameters' device).
torch::Tensor clip_gradients(const std::vector<torch::Tensor>& parameters, double max_norm);

}  // namespace optim_offload::train
