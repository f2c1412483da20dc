#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "train/model/linear.h"
#include "train/model/model_config.h"

namespace optim_offload::train {

/// SwiGLU (Shazeer, 2020, arXiv:2002.05202): down(silu(gate(x)) * up(x)).
class MLP : public torch::nn::Module {
 public:
  MLP(const ModelConfig& config, const torch::TensorOptions& options);

  torch::Tensor forward(const torch::Tensor& x) const;  // (B, T, dim) -> (B, T, dim)

 private:
  std::shared_ptr<Linear> gate_proj_;
  std::shared_ptr<Linear> up_proj_;
  std::shared_ptr<Linear> down_proj_;
};

}  // namespace optim_offload::train
