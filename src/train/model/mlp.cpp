#include "train/model/mlp.h"

#include <cmath>

namespace optim_offload::train {

MLP::MLP(const ModelConfig& c, const torch::TensorOptions& options) {
  const double residual_std = c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers));
  gate_proj_ =
      register_module("gate_proj", std::make_shared<Linear>(c.dim, c.ffn_dim, c.init_std, options));
  up_proj_ =
      register_module("up_proj", std::make_shared<Linear>(c.dim, c.ffn_dim, c.init_std, options));
  down_proj_ = register_module("down_proj",
                               std::make_shared<Linear>(c.ffn_dim, c.dim, residual_std, options));
}

torch::Tensor MLP::forward(const torch::Tensor& x) const {
  return down_proj_->forward(at::silu(gate_proj_->forward(x)) * up_proj_->forward(x));
}

}  // namespace optim_offload::train
