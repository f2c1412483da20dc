#include "optim_offload/optimizers/fused_adamw.h"

#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <sstream>

#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

using torch::optim::AdamWOptions;

TEST(FusedAdamW, AgreesWithAdamWToRounding) {
  auto a = parameter({50}, 1, torch::kFloat64);
  auto b = parameter({50}, 1, torch::kFloat64);
  const auto options = AdamWOptions(0.05).amsgrad(true).weight_decay(0.1);
  FusedAdamW fused({a}, options);
  torch::optim::AdamW plain({b}, options);
  for (int64_t step = 0; step < 20; ++step) {
    a.mutable_grad() = numbers({50}, step, torch::kFloat64);
    b.mutable_grad() = a.grad().clone();
    fused.step();
    plain.step();
  }
  // 20 steps of some ten roundings each, at values near 1.
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-12);
}

template <typename From, typename To>
void expect_interchange() {
  const auto options = AdamWOptions(0.05).amsgrad(true).betas(std::make_tuple(0.7, 0.8));
  auto p = parameter({4, 9}, 1);
  From from({p}, options);
  for (int64_t step = 0; step < 3; ++step) {
    p.mutable_grad() = numbers({4, 9}, step);
    from.step();
  }
  std::stringstream archive;
  torch::save(from, archive);
  auto q = parameter({4, 9}, 2);
  To to({q}, AdamWOptions(7));
  torch::load(to, archive);
  EXPECT_TRUE(static_cast<AdamWOptions&>(to.param_groups()[0].options()) == options);
  EXPECT_EQ(adamw_state(to, q).step(), 3);
  EXPECT_TRUE(same_bits(adamw_state(to, q).exp_avg(), adamw_state(from, p).exp_avg()));
  EXPECT_TRUE(same_bits(adamw_state(to, q).exp_avg_sq(), adamw_state(from, p).exp_avg_sq()));
  EXPECT_TRUE(
      same_bits(adamw_state(to, q).max_exp_avg_sq(), adamw_state(from, p).max_exp_avg_sq()));
  // And it goes on from there.
  q.mutable_grad() = numbers({4, 9}, 9);
  to.step();
  EXPECT_EQ(adamw_state(to, q).step(), 4);
}

TEST(FusedAdamW, ReadsArchivesOfAdamW) { expect_interchange<torch::optim::AdamW, FusedAdamW>(); }

TEST(FusedAdamW, WritesArchivesForAdamW) { expect_interchange<FusedAdamW, torch::optim::AdamW>(); }

TEST(FusedAdamW, TakesAnyLayout) {
  const auto run = [](const torch::Tensor& p, const torch::Tensor& grad) {
    p.mutable_grad() = grad;
    FusedAdamW optimizer({p}, AdamWOptions(0.05).amsgrad(true));
    optimizer.step();
    optimizer.step();
  };
  auto plain = parameter({2, 3, 4, 5}, 1);
  run(plain, numbers({2, 3, 4, 5}, 2));

  // Without its gradient in the same layout, and with.
  for (const bool alike : {false, true}) {
    auto last = numbers({2, 3, 4, 5}, 1).to(torch::MemoryFormat::ChannelsLast).requires_grad_(true);
    const auto grad = numbers({2, 3, 4, 5}, 2);
    run(last, alike ? grad.to(torch::MemoryFormat::ChannelsLast) : grad);
    EXPECT_TRUE(same_bits(last, plain));
  }
  // With gaps between its elements, which must not be written.
  auto wide = torch::full({2, 3, 4, 10}, 42.0F);
  auto gaps = wide.slice(3, 0, 10, 2).detach();
  gaps.copy_(numbers({2, 3, 4, 5}, 1));
  gaps.requires_grad_(true);
  run(gaps, numbers({2, 3, 4, 5}, 2));
  EXPECT_TRUE(same_bits(gaps, plain));
  EXPECT_TRUE((wide.slice(3, 1, 10, 2) == 42).all().item<bool>());
}

TEST(FusedAdamW, RefusesWhatItCannotStepAndChangesNothing) {
  auto good = parameter({6}, 1);
  auto bad = parameter({6}, 2);
  FusedAdamW optimizer({good, bad}, AdamWOptions(0.1));
  good.mutable_grad() = numbers({6}, 3);
  bad.mutable_grad() = numbers({6}, 4);
  optimizer.step();
  const auto before = good.detach().clone();
  bad.mutable_grad() = numbers({6}, 4).to_sparse();
  try {
    optimizer.step();
    FAIL() << "a sparse gradient was taken";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("sparse gradients"), std::string::npos);
  }
  EXPECT_TRUE(same_bits(good, before));
  EXPECT_EQ(adamw_state(optimizer, good).step(), 1);
  bad.mutable_grad() = numbers({6}, 4);
  optimizer.step();
  EXPECT_EQ(adamw_state(optimizer, good).step(), 2);

  auto complex = torch::zeros({2}, torch::kComplexFloat).requires_grad_(true);
  complex.mutable_grad() = torch::ones({2}, torch::kComplexFloat);
  EXPECT_THROW(FusedAdamW({complex}).step(), c10::Error);

  static_cast<AdamWOptions&>(optimizer.param_groups()[0].options()).amsgrad(true);
  EXPECT_THROW(optimizer.step(), c10::Error);  // Its state was made without.
}

TEST(FusedAdamW, ChecksItsOptions) {
  const std::vector<torch::Tensor> params = {parameter({6}, 1)};
  EXPECT_THROW(FusedAdamW(params, AdamWOptions(-1)), c10::Error);
  EXPECT_THROW(FusedAdamW(params, AdamWOptions().eps(-1)), c10::Error);
  EXPECT_THROW(FusedAdamW(params, AdamWOptions().weight_decay(-1)), c10::Error);
  EXPECT_THROW(FusedAdamW(params, AdamWOptions().betas(std::make_tuple(0.9, 1.0))), c10::Error);
}

TEST(FusedAdamW, CallsTheClosureOnceWithGradMode) {
  auto p = parameter({6}, 1);
  FusedAdamW optimizer({p});
  int calls = 0;
  const auto loss = optimizer.step([&] {
    ++calls;
    EXPECT_TRUE(torch::GradMode::is_enabled());
    auto value = p.square().sum();
    value.backward();
    return value;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(loss.defined());
  EXPECT_EQ(adamw_state(optimizer, p).step(), 1);
}

}  // namespace
}  // namespace optim_offload
