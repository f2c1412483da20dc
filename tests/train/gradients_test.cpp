#include "train/gradients.h"

#include <cmath>

#include <torch/nn/utils/clip_grad.h>

#include "train/model/transformer.h"
#include "train/support.h"

namespace optim_offload::train {
namespace {

std::vector<torch::Tensor> with_gradients(double scale, torch::Dtype dtype = torch::kFloat32) {
  torch::manual_seed(3);
  std::vector<torch::Tensor> parameters;
  for (const int64_t size : {7, 100, 1}) {
    auto p = torch::zeros({size}, dtype).requires_grad_();
    p.mutable_grad() = (torch::randn({size}) * scale).to(dtype);
    parameters.push_back(p);
  }
  parameters.push_back(torch::zeros({4}).requires_grad_());  // no gradient
  return parameters;
}

TEST(ClipGradients, DoesWhatTorchDoes) {
  for (const double scale : {5.0, 0.01}) {
    const auto ours = with_gradients(scale);
    const auto theirs = with_gradients(scale);
    const auto norm = clip_gradients(ours, 1.0);
    const double expected = torch::nn::utils::clip_grad_norm_(theirs, 1.0);
    // The norms are sums of a hundred squares in another order.
    EXPECT_NEAR(norm.item<double>(), expected, 1e-5 * expected);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(torch::allclose(ours[i].grad(), theirs[i].grad(), 1e-5, 1e-8));
    }
    EXPECT_FALSE(ours[3].grad().defined());
  }
}

TEST(ClipGradients, LeavesSmallGradientsBitForBit) {
  const auto parameters = with_gradients(0.01);
  const auto before = parameters[1].grad().clone();
  clip_gradients(parameters, 1.0);
  EXPECT_TRUE(same_bits(parameters[1].grad(), before));
}

TEST(ClipGradients, ZeroOnlyMeasures) {
  const auto parameters = with_gradients(5.0);
  const auto before = parameters[1].grad().clone();
  EXPECT_GT(clip_gradients(parameters, 0.0).item<float>(), 5.0f);
  EXPECT_TRUE(same_bits(parameters[1].grad(), before));
  EXPECT_EQ(clip_gradients({parameters[3]}, 1.0).item<float>(), 0.0f);
}

TEST(ClipGradients, MeasuresBFloat16InFullPrecision) {
  const auto narrow = with_gradients(5.0, torch::kBFloat16);
  double squares = 0;
  for (size_t i = 0; i < 3; ++i) {
    squares += narrow[i].grad().to(torch::kFloat64).square().sum().item<double>();
  }
  const auto norm = clip_gradients(narrow, 1.0);
  EXPECT_EQ(norm.dtype(), torch::kFloat32);
  EXPECT_NEAR(norm.item<double>(), std::sqrt(squares), 1e-5 * std::sqrt(squares));
  EXPECT_EQ(narrow[0].grad().dtype(), torch::kBFloat16);
}

TEST(UniqueParameters, TakesATiedTensorOnce) {
  ModelConfig config;
  config.tied = true;
  const CausalLM tied(config, torch::kFloat32);
  EXPECT_EQ(unique_parameters(tied).size() + 1, tied.parameters().size());
  config.tied = false;
  const CausalLM untied(config, torch::kFloat32);
  EXPECT_EQ(unique_parameters(untied).size(), untied.parameters().size());
}

}  // namespace
}  // namespace optim_offload::train
