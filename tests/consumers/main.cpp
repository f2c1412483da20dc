// A user's program: wraps an optimizer, trains a little, and checks that the loss falls.
#include <iostream>
#include <memory>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include "optim_offload/cpu_offload_optimizer.h"

int main() {
  torch::manual_seed(1);
  torch::nn::Linear model(8, 1);
  auto base =
      std::make_unique<torch::optim::AdamW>(model->parameters(), torch::optim::AdamWOptions(1e-2));
  optim_offload::CPUOffloadOptimizer optimizer(
      std::move(base), model->named_parameters(),
      optim_offload::OffloadOptions().chunked(true).stream(true));
  const torch::Tensor x = torch::randn({64, 8});
  const torch::Tensor y = x.sum(1, /*keepdim=*/true);
  double first = 0;
  double last = 0;
  for (int i = 0; i < 100; ++i) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (i == 0) first = last;
  }
  std::cout << "loss " << first << " to " << last << "\n";
  return last < first / 2 ? 0 : 1;
}
