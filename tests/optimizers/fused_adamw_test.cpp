#include "optim_offload/optimizers/fused_adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <atomic>
#include <sstream>

#include "optimizers/same_bits.h"

#ifdef OPTIM_OFFLOAD_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace optim_offload {
namespace {

using torch::optim::AdamWOptions;
using torch::optim::AdamWParamState;

AdamWParamState& state_of(torch::optim::Optimizer& optimizer, const torch::Tensor& param) {
  return static_cast<AdamWParamState&>(*optimizer.state().at(param.unsafeGetTensorImpl()));
}

// The kernel called for one tensor with a step tensor of its own: what the batches must equal.
struct Reference {
  torch::Tensor param, exp_avg, exp_avg_sq, max_exp_avg_sq, step;

  explicit Reference(const torch::Tensor& like)
      : param(like.detach().clone()),
        exp_avg(torch::zeros_like(param)),
        exp_avg_sq(torch::zeros_like(param)),
        max_exp_avg_sq(torch::zeros_like(param)),
        step(torch::zeros({}, param.options().dtype(torch::kFloat32))) {}

  void step_with(const torch::Tensor& grad, const AdamWOptions& o) {
    if (!grad.defined() || param.numel() == 0) return;
    step += 1;
    const std::vector<torch::Tensor> maxima =
        o.amsgrad() ? std::vector<torch::Tensor>{max_exp_avg_sq} : std::vector<torch::Tensor>{};
    at::_fused_adamw_({param}, {grad}, {exp_avg}, {exp_avg_sq}, maxima, {step}, o.lr(),
                      std::get<0>(o.betas()), std::get<1>(o.betas()), o.weight_decay(), o.eps(),
                      o.amsgrad(), false);
  }
};

class FusedAdamWBits : public ::testing::TestWithParam<bool> {};

void expect_the_kernels_bits(torch::Device device, bool amsgrad) {
  const auto options = AdamWOptions(0.05).amsgrad(amsgrad).weight_decay(0.1);
  std::vector<torch::Tensor> params = {parameter({37}, 1),
                                       parameter({4, 9}, 2, torch::kFloat64),
                                       parameter({}, 3),
                                       parameter({64, 3}, 4, torch::kBFloat16),
                                       parameter({0, 5}, 5),
                                       parameter({130}, 6),
                                       parameter({11}, 7, torch::kHalf)};
  for (auto& p : params) p = p.detach().to(device).requires_grad_(true);
  std::vector<Reference> references(params.begin(), params.end());
  FusedAdamW optimizer(params, options);
  for (int64_t step = 0; step < 6; ++step) {
    for (size_t i = 0; i < params.size(); ++i) {
      // Gradients that come late and pause, so that step counts differ.
      const bool without = (i == 5 && step < 2) || (i == 0 && step == 3);
      auto& p = params[i];
      p.mutable_grad() =
          without
              ? torch::Tensor()
              : numbers(p.sizes(), 20 * step + static_cast<int64_t>(i), p.scalar_type()).to(device);
      references[i].step_with(p.grad(), options);
    }
    optimizer.step();
  }
  for (size_t i = 0; i < params.size(); ++i) {
    SCOPED_TRACE(i);
    const auto& state = state_of(optimizer, params[i]);
    EXPECT_TRUE(same_bits(params[i], references[i].param));
    EXPECT_TRUE(same_bits(state.exp_avg(), references[i].exp_avg));
    EXPECT_TRUE(same_bits(state.exp_avg_sq(), references[i].exp_avg_sq));
    EXPECT_EQ(state.max_exp_avg_sq().defined(), amsgrad);
  }
  EXPECT_EQ(state_of(optimizer, params[5]).step(), 4);
  EXPECT_EQ(state_of(optimizer, params[0]).step(), 5);
  EXPECT_EQ(state_of(optimizer, params[1]).step(), 6);
}

TEST_P(FusedAdamWBits, EqualTheKernelPerTensor) {
  expect_the_kernels_bits(torch::kCPU, GetParam());
}

TEST_P(FusedAdamWBits, EqualTheKernelPerTensor_CUDA) {
  SKIP_WITHOUT_CUDA();
  expect_the_kernels_bits(torch::kCUDA, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Amsgrad, FusedAdamWBits, ::testing::Bool());

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
  EXPECT_EQ(state_of(to, q).step(), 3);
  EXPECT_TRUE(same_bits(state_of(to, q).exp_avg(), state_of(from, p).exp_avg()));
  EXPECT_TRUE(same_bits(state_of(to, q).exp_avg_sq(), state_of(from, p).exp_avg_sq()));
  EXPECT_TRUE(same_bits(state_of(to, q).max_exp_avg_sq(), state_of(from, p).max_exp_avg_sq()));
  // And it goes on from there.
  q.mutable_grad() = numbers({4, 9}, 9);
  to.step();
  EXPECT_EQ(state_of(to, q).step(), 4);
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

// Counts the calls of one operator by this thread.
class CallCount {
 public:
  explicit CallCount(const char* name) {
    wanted = name;
    count = 0;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& fn)
                                       -> std::unique_ptr<at::ObserverContext> {
          count += wanted == fn.name();
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CallCount() { at::removeCallback(handle_); }
  CallCount(const CallCount&) = delete;
  CallCount& operator=(const CallCount&) = delete;
  int calls() const { return count; }

 private:
  static thread_local std::string wanted;
  static thread_local int count;
  at::CallbackHandle handle_;
};
thread_local std::string CallCount::wanted;
thread_local int CallCount::count = 0;

TEST(FusedAdamW, CallsTheKernelOncePerDtypeAndStepCount) {
  std::vector<torch::Tensor> params;
  for (int64_t i = 0; i < 100; ++i) {
    params.push_back(parameter({5}, i, i % 2 ? torch::kFloat32 : torch::kFloat64));
    params.back().mutable_grad() = numbers({5}, i, params.back().scalar_type());
  }
  FusedAdamW optimizer(params);
  optimizer.step();
  {
    const CallCount kernels("aten::_fused_adamw_");
    optimizer.step();
    EXPECT_EQ(kernels.calls(), 2);
  }
  params[0].mutable_grad() = torch::Tensor();
  optimizer.step();
  params[0].mutable_grad() = numbers({5}, 0, torch::kFloat64);
  {
    const CallCount kernels("aten::_fused_adamw_");
    optimizer.step();
    EXPECT_EQ(kernels.calls(), 3);
  }
  {
    // One tensor of a step count for each call, not for each parameter.
    const CallCount fills("aten::full");
    optimizer.step();
    EXPECT_EQ(fills.calls(), 3);
  }
}

#ifdef OPTIM_OFFLOAD_CUDA
TEST(FusedAdamW, NeverWaitsForTheDevice_CUDA) {
  SKIP_WITHOUT_CUDA();
  const auto p = parameter({50}, 1).detach().cuda().requires_grad_(true);
  p.mutable_grad() = numbers({50}, 2).cuda();
  FusedAdamW optimizer({p});
  auto& warnings = c10::cuda::warning_state();
  warnings.set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  EXPECT_NO_THROW(optimizer.step());  // Makes its state.
  EXPECT_NO_THROW(optimizer.step());
  EXPECT_THROW(p.sum().item<float>(), c10::Error);  // The mode is on.
  warnings.set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
}
#endif

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
  EXPECT_EQ(state_of(optimizer, good).step(), 1);
  bad.mutable_grad() = numbers({6}, 4);
  optimizer.step();
  EXPECT_EQ(state_of(optimizer, good).step(), 2);

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
  EXPECT_EQ(state_of(optimizer, p).step(), 1);
}

}  // namespace
}  // namespace optim_offload
