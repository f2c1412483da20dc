// The fused kernel: that batches give the bits of single calls, and how often it is called.
#include <ATen/ops/_fused_adamw.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "optim_offload/optimizers/fused_adamw.h"
#include "optimizers/optimizer_kit.h"

#ifdef OPTIM_OFFLOAD_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace optim_offload {
namespace {

using torch::optim::AdamWOptions;

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
    const auto& state = adamw_state(optimizer, params[i]);
    EXPECT_TRUE(same_bits(params[i], references[i].param));
    EXPECT_TRUE(same_bits(state.exp_avg(), references[i].exp_avg));
    EXPECT_TRUE(same_bits(state.exp_avg_sq(), references[i].exp_avg_sq));
    EXPECT_EQ(state.max_exp_avg_sq().defined(), amsgrad);
  }
  EXPECT_EQ(adamw_state(optimizer, params[5]).step(), 4);
  EXPECT_EQ(adamw_state(optimizer, params[0]).step(), 5);
  EXPECT_EQ(adamw_state(optimizer, params[1]).step(), 6);
}

TEST_P(FusedAdamWBits, EqualTheKernelPerTensor) {
  expect_the_kernels_bits(torch::kCPU, GetParam());
}

TEST_P(FusedAdamWBits, EqualTheKernelPerTensor_CUDA) {
  SKIP_WITHOUT_CUDA();
  expect_the_kernels_bits(torch::kCUDA, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Amsgrad, FusedAdamWBits, ::testing::Bool());

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

}  // namespace
}  // namespace optim_offload
