#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

namespace optim_offload::train {

/// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang and Sennrich, 2019,
/// arXiv:1910.07467); parameter `weight` (dim), ones at first.
class RMSNorm : public torch::nn::Module {
 public:
  RMSNorm(int64_t dim, double eps, const torch::TensorOptions& options);

  torch::Tensor forward(const torch::Tensor& x) const;  // (..., dim) -> (..., dim)

  torch::Tensor weight;

 private:
  double eps_;
};

}  // namespace optim_offload::train
