#include "train/gradients.h"

#include <unordered_set>

namespace optim_offload::train {

std::vector<torch::Tensor> unique_parameters(const torch::nn::Module& module) {
  std::vector<torch::Tensor> unique;
  std::unordered_set<const void*> seen;
  for (const auto& parameter : module.parameters()) {
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) unique.push_back(parameter);
  }
  return unique;
}

torch::Tensor clip_gradients(const std::vector<torch::Tensor>& parameters, double max_norm) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return torch::zeros({});
  // In fp32 also for bf16, whose 8 bits would round the norm by up to 0.4 %.
  const auto norms = at::_foreach_norm(gradients, 2.0, torch::kFloat32);
  auto norm = at::stack(norms).norm(2.0);
  if (max_norm > 0) {
    const auto factor = (max_norm / (norm + 1e-6)).clamp_max(1.0);
    for (auto& gradient : gradients) gradient.mul_(factor);
  }
  return norm;
}

}  // namespace optim_offload::train
