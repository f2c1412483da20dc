#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

namespace optim_offload::train {

/// y = x W^T without bias; parameter `weight` (out, in), drawn from N(0, std).
///
/// Made straight in its final dtype and on its final device, so that a large model never exists
/// twice.
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in, int64_t out, double std, const torch::TensorOptions& options);

  /// Shares `weight` (out, in) with its owner, for a tied head.
  explicit Linear(torch::Tensor weight);

  torch::Tensor forward(const torch::Tensor& x) const;  // (..., in) -> (..., out)

  torch::Tensor weight;
};

}  // namespace optim_offload::train
