#include "train/model/rms_norm.h"

namespace optim_offload::train {

RMSNorm::RMSNorm(int64_t dim, double eps, const torch::TensorOptions& options)
    : weight(register_parameter("weight", torch::ones({dim}, options))), eps_(eps) {}

torch::Tensor RMSNorm::forward(const torch::Tensor& x) const {
  return at::rms_norm(x, weight.sizes(), weight, eps_);
}

}  // namespace optim_offload::train
