#pragma once

#include <string>
#include <utility>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

/// What the examples train: something small whose parameters have names like a transformer's.
namespace examples {

struct NetImpl : torch::nn::Module {
  NetImpl() : head(register_module("head", torch::nn::Linear(32, 1))) {
    register_module("layers", layers);
    for (int i = 0; i < 3; ++i) layers->push_back(torch::nn::Linear(32, 32));
  }
  torch::Tensor forward(torch::Tensor x) {  // (B, 32)
    for (const auto& layer : *layers) x = layer->as<torch::nn::Linear>()->forward(x).relu();
    return head->forward(x);  // (B, 1)
  }
  torch::nn::ModuleList layers;
  torch::nn::Linear head;
};
TORCH_MODULE(Net);

struct Batch {
  torch::Tensor x;  // (B, 32)
  torch::Tensor y;  // (B, 1)
};

inline std::vector<Batch> make_batches(int count) {
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) {
    const torch::Tensor x = torch::randn({8, 32});
    batches.push_back({x, x.sum(1, /*keepdim=*/true)});
  }
  return batches;
}

inline std::vector<Batch> split(const Batch& batch, int64_t parts) {
  std::vector<Batch> out;
  const auto x = batch.x.chunk(parts);
  const auto y = batch.y.chunk(parts);
  for (size_t i = 0; i < x.size(); ++i) out.push_back({x[i], y[i]});
  return out;
}

inline torch::Tensor loss_of(Net& model, const Batch& batch) {
  return torch::nn::functional::mse_loss(model->forward(batch.x), batch.y);
}

}  // namespace examples
