#include "train/model/linear.h"

namespace optim_offload::train {

Linear::Linear(int64_t in, int64_t out, double std, const torch::TensorOptions& options)
    : Linear(torch::empty({out, in}, options).normal_(0.0, std)) {}

Linear::Linear(torch::Tensor tensor) : weight(register_parameter("weight", std::move(tensor))) {}

torch::Tensor Linear::forward(const torch::Tensor& x) const { return at::linear(x, weight); }

}  // namespace optim_offload::train
