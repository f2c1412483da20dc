#include "optim_offload/optimizers/muon.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/serialize.h>

#include <sstream>

#include "optim_offload/optimizers/fused_adamw.h"
#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

using torch::optim::OptimizerParamGroup;

MuonOptions& options_of(torch::optim::Optimizer& optimizer, size_t group) {
  return static_cast<MuonOptions&>(optimizer.param_groups()[group].options());
}

struct Model {
  torch::Tensor matrix = parameter({6, 4}, 1);
  torch::Tensor bias = parameter({7}, 2);
  torch::Tensor embedding = parameter({5, 3}, 3);

  std::vector<OptimizerParamGroup> groups() const {
    std::vector<OptimizerParamGroup> out;
    out.emplace_back(std::vector<torch::Tensor>{matrix},
                     std::make_unique<MuonOptions>(MuonOptions(0.02).weight_decay(0.3)));
    out.emplace_back(std::vector<torch::Tensor>{bias, embedding},
                     std::make_unique<MuonOptions>(MuonOptions(0.01)
                                                       .adamw(true)
                                                       .weight_decay(0.1)
                                                       .adamw_betas({0.8, 0.95})
                                                       .adamw_eps(1e-6)));
    return out;
  }
  void set_grads(int64_t seed) const {
    matrix.mutable_grad() = numbers(matrix.sizes(), seed);
    bias.mutable_grad() = numbers(bias.sizes(), seed + 1);
    embedding.mutable_grad() = numbers(embedding.sizes(), seed + 2);
  }
};

TEST(Muon, KeepsEachGroupsOptions) {
  Model model;
  Muon muon(model.groups(), MuonOptions(0.5));
  EXPECT_DOUBLE_EQ(options_of(muon, 0).lr(), 0.02);
  EXPECT_DOUBLE_EQ(options_of(muon, 1).lr(), 0.01);
  EXPECT_TRUE(options_of(muon, 1).adamw());
  const auto late = parameter({3}, 9);
  muon.add_param_group(OptimizerParamGroup(
      {late}, std::make_unique<MuonOptions>(MuonOptions(0.7).adamw(true).step(5))));
  EXPECT_DOUBLE_EQ(options_of(muon, 2).lr(), 0.7);
  EXPECT_EQ(options_of(muon, 2).step(), 5);
}

TEST(Muon, AdamWGroupsStepAsFusedAdamW) {
  Model model;
  Model other;
  Muon muon(model.groups());
  FusedAdamW adamw({other.bias, other.embedding}, torch::optim::AdamWOptions(0.01)
                                                      .weight_decay(0.1)
                                                      .betas(std::make_tuple(0.8, 0.95))
                                                      .eps(1e-6));
  for (int64_t step = 0; step < 4; ++step) {
    model.set_grads(10 * step);
    other.set_grads(10 * step);
    muon.step();
    adamw.step();
  }
  EXPECT_TRUE(same_bits(model.bias, other.bias));
  EXPECT_TRUE(same_bits(model.embedding, other.embedding));
  const auto& state =
      static_cast<MuonParamState&>(*muon.state().at(model.bias.unsafeGetTensorImpl()));
  EXPECT_FALSE(state.momentum_buffer().defined());
  EXPECT_TRUE(state.exp_avg().defined());
  EXPECT_TRUE(state.exp_avg_sq().defined());
}

TEST(Muon, CountsCallsOfStepInEveryGroup) {
  Model model;
  Muon muon(model.groups());
  muon.step();  // No gradient anywhere.
  model.matrix.mutable_grad() = numbers({6, 4}, 1);
  muon.step();
  EXPECT_EQ(options_of(muon, 0).step(), 2);
  EXPECT_EQ(options_of(muon, 1).step(), 2);
}

TEST(Muon, ThrowLeavesTheGroupsCounter) {
  Model model;
  Muon muon(model.groups());
  model.set_grads(1);
  muon.step();
  model.bias.mutable_grad() = numbers({7}, 1).to_sparse();
  EXPECT_THROW(muon.step(), c10::Error);
  EXPECT_EQ(options_of(muon, 1).step(), 1);
}

TEST(Muon, DoesNotChangeABFloat16BufferWhileOrthogonalizing) {
  auto p = parameter({4, 4}, 1, torch::kBFloat16);
  p.mutable_grad() = numbers({4, 4}, 2, torch::kBFloat16);
  Muon muon({p}, MuonOptions(0.02).nesterov(false).momentum(0.5));
  muon.step();
  const auto& state = static_cast<MuonParamState&>(*muon.state().at(p.unsafeGetTensorImpl()));
  const auto expected = torch::zeros_like(p.grad()).lerp_(p.grad(), 0.5);
  EXPECT_TRUE(same_bits(state.momentum_buffer(), expected));
}

TEST(Muon, CallsTheClosureOnceWithGradMode) {
  auto p = parameter({3, 3}, 1);
  Muon muon({p}, MuonOptions(0.02));
  int calls = 0;
  const auto loss = muon.step([&] {
    ++calls;
    EXPECT_TRUE(torch::GradMode::is_enabled());
    muon.zero_grad();
    auto value = p.square().sum();
    value.backward();
    return value;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(loss.defined());
  EXPECT_EQ(options_of(muon, 0).step(), 1);
}

TEST(Muon, ArchivesGoOnBitEqual) {
  Model model;
  Muon muon(model.groups());
  for (int64_t step = 0; step < 3; ++step) {
    model.set_grads(10 * step);
    muon.step();
  }
  std::stringstream archive;
  torch::save(muon, archive);

  Model copy;
  copy.matrix.data().copy_(model.matrix);
  copy.bias.data().copy_(model.bias);
  copy.embedding.data().copy_(model.embedding);
  Muon resumed(copy.groups());
  options_of(resumed, 0).lr(9).step(77);
  torch::load(resumed, archive);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(options_of(resumed, i) == options_of(muon, i));
  EXPECT_EQ(options_of(resumed, 1).step(), 3);
  model.set_grads(50);
  copy.set_grads(50);
  muon.step();
  resumed.step();
  EXPECT_TRUE(same_bits(model.matrix, copy.matrix));
  EXPECT_TRUE(same_bits(model.bias, copy.bias));
  EXPECT_TRUE(same_bits(model.embedding, copy.embedding));
}

TEST(Muon, AgreesWithTheCpu_CUDA) {
  SKIP_WITHOUT_CUDA();
  Model model;
  Model other;
  for (auto* p : {&other.matrix, &other.bias, &other.embedding}) {
    *p = p->detach().cuda().requires_grad_(true);
  }
  Muon muon(model.groups());
  Muon muon_cuda(other.groups());
  for (int64_t step = 0; step < 5; ++step) {
    model.set_grads(10 * step);
    other.matrix.mutable_grad() = model.matrix.grad().cuda();
    other.bias.mutable_grad() = model.bias.grad().cuda();
    other.embedding.mutable_grad() = model.embedding.grad().cuda();
    muon.step();
    muon_cuda.step();
  }
  // The iteration runs in bfloat16: a unit in the last place (2^-8), grown at most fourfold, in
  // five steps of at most 0.03 (lr, times the square root of 6 / 4).
  EXPECT_LT((model.matrix - other.matrix.cpu()).abs().max().item<float>(), 2.5e-3);
  EXPECT_LT((model.bias - other.bias.cpu()).abs().max().item<float>(), 1e-5);
  EXPECT_LT((model.embedding - other.embedding.cpu()).abs().max().item<float>(), 1e-5);
}

TEST(Muon, RefusesTheArchiveOfAnotherOptimizer) {
  auto p = parameter({3, 3}, 1);
  torch::optim::AdamW adamw({p});
  std::stringstream archive;
  torch::save(adamw, archive);
  Muon muon({p}, MuonOptions(0.25));
  EXPECT_THROW(torch::load(muon, archive), c10::Error);
  EXPECT_DOUBLE_EQ(options_of(muon, 0).lr(), 0.25);
}

// Found by fuzzing: steps without end.
TEST(Muon, RefusesOptionsOutOfRangeInAnArchive) {
  MuonOptions hostile(0.1);
  hostile.ns_steps(int64_t{1} << 58);
  torch::serialize::OutputArchive out;
  hostile.serialize(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  MuonOptions options(0.2);
  EXPECT_THROW(options.serialize(in), c10::Error);
  EXPECT_EQ(options.ns_steps(), 5);
  EXPECT_EQ(options.lr(), 0.2);
}

TEST(Muon, OptionsCompareEveryField) {
  const MuonOptions base;
  EXPECT_TRUE(base == MuonOptions());
  EXPECT_FALSE(base == MuonOptions().lr(2));
  EXPECT_FALSE(base == MuonOptions().weight_decay(2));
  EXPECT_FALSE(base == MuonOptions().momentum(0.5));
  EXPECT_FALSE(base == MuonOptions().nesterov(false));
  EXPECT_FALSE(base == MuonOptions().ns_coefficients({1, 2, 3}));
  EXPECT_FALSE(base == MuonOptions().eps(1));
  EXPECT_FALSE(base == MuonOptions().ns_steps(1));
  EXPECT_FALSE(base == MuonOptions().adjust_lr_fn("match_rms_adamw"));
  EXPECT_FALSE(base == MuonOptions().adamw(true));
  EXPECT_FALSE(base == MuonOptions().adamw_betas({0.1, 0.2}));
  EXPECT_FALSE(base == MuonOptions().adamw_eps(1));
  EXPECT_FALSE(base == MuonOptions().step(1));
}

TEST(Muon, SchedulersDriveItsLearningRate) {
  auto p = parameter({3, 3}, 1);
  Muon muon({p}, MuonOptions(0.5));
  torch::optim::StepLR scheduler(muon, /*step_size=*/1, /*gamma=*/0.5);
  p.mutable_grad() = numbers({3, 3}, 1);
  muon.step();
  scheduler.step();
  scheduler.step();  // LibTorch's first call does not count as a step.
  EXPECT_DOUBLE_EQ(options_of(muon, 0).lr(), 0.25);
}

TEST(Muon, RefusesWhatItCannotStep) {
  EXPECT_THROW(Muon({parameter({3}, 1)}), c10::Error);
  EXPECT_THROW(Muon({parameter({2, 2, 2}, 1)}), c10::Error);
  EXPECT_NO_THROW(Muon({parameter({3}, 1)}, MuonOptions().adamw(true)));
  const std::vector<torch::Tensor> good = {parameter({2, 2}, 1)};
  EXPECT_THROW(Muon(good, MuonOptions(-1)), c10::Error);
  EXPECT_THROW(Muon(good, MuonOptions().weight_decay(-1)), c10::Error);
  EXPECT_THROW(Muon(good, MuonOptions().ns_steps(100)), c10::Error);
  EXPECT_THROW(Muon(good, MuonOptions().adjust_lr_fn("none")), c10::Error);
  EXPECT_THROW(Muon(good, MuonOptions().adamw_betas({0.9, 1.0})), c10::Error);
  Muon muon(good);
  EXPECT_THROW(muon.add_param_group(OptimizerParamGroup({parameter({3}, 1)})), c10::Error);
  EXPECT_EQ(muon.param_groups().size(), 1u);
  muon.param_groups()[0].set_options(std::make_unique<torch::optim::AdamWOptions>());
  EXPECT_THROW(muon.step(), c10::Error);
  auto complex = torch::zeros({2, 2}, torch::kComplexFloat).requires_grad_(true);
  complex.mutable_grad() = torch::ones({2, 2}, torch::kComplexFloat);
  EXPECT_THROW(Muon({complex}).step(), c10::Error);
}

}  // namespace
}  // namespace optim_offload
