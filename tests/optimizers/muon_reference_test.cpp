// Muon against Python's torch.optim.Muon, whose results are in tests/reference/muon_reference.h.
#include "reference/muon_reference.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <bit>
#include <fstream>
#include <functional>
#include <span>
#include <string>

#include "optim_offload/optimizers/muon.h"
#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return {};
}

// The same operations give the same bits where the same kernels run them. Which run depends on the
// processor and on LibTorch's version.
bool same_kernels() {
  return std::string(TORCH_VERSION).starts_with(muon_reference::kTorch) &&
         at::get_cpu_capability() == muon_reference::kCapability &&
         cpu_model() == muon_reference::kCpu;
}

struct Case {
  MuonOptions options;
  torch::Dtype dtype;
  std::span<const uint32_t> params;
  std::span<const uint32_t> buffers;
};

// Elsewhere: one unit in the last place of bfloat16 (2^-8), grown at most fourfold by the
// iteration, in five steps of at most 0.02; for bfloat16 parameters, two units of values below 1.
double tolerance(const Case& test) { return test.dtype == torch::kBFloat16 ? 8e-3 : 1e-3; }

void compare(const std::vector<torch::Tensor>& tensors, std::span<const uint32_t> reference,
             double tolerance) {
  size_t next = 0;
  for (const auto& tensor : tensors) {
    const auto flat = tensor.detach().to(torch::kFloat32).contiguous().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i, ++next) {
      const float value = flat[i].item<float>();
      ASSERT_LT(next, reference.size());
      if (same_kernels()) {
        ASSERT_EQ(std::bit_cast<uint32_t>(value), reference[next]) << "number " << next;
      } else {
        ASSERT_NEAR(value, std::bit_cast<float>(reference[next]), tolerance) << "number " << next;
      }
    }
  }
  EXPECT_EQ(next, reference.size());
}

void run(const Case& test) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<torch::Tensor> params = {parameter({4, 6}, 100, test.dtype),
                                       parameter({6, 3}, 101, test.dtype),
                                       parameter({5, 5}, 102, test.dtype)};
  Muon muon(params, test.options);
  for (int64_t step = 0; step < 5; ++step) {
    for (int64_t i = 0; i < 3; ++i) {
      const bool late = i == 1 && step == 0;
      auto& p = params[static_cast<size_t>(i)];
      p.mutable_grad() = late ? torch::Tensor() : numbers(p.sizes(), 10 * step + i, test.dtype);
    }
    if (step == 3) {
      auto& options = muon.param_groups()[0].options();
      options.set_lr(options.get_lr() * 0.5);
    }
    muon.step();
  }
  at::set_num_threads(threads);
  std::vector<torch::Tensor> buffers;
  for (const auto& p : params) {
    const auto& state = static_cast<MuonParamState&>(*muon.state().at(p.unsafeGetTensorImpl()));
    buffers.push_back(state.momentum_buffer());
  }
  compare(params, test.params, tolerance(test));
  compare(buffers, test.buffers, test.dtype == torch::kBFloat16 ? 8e-3 : 1e-6);
}

namespace ref = muon_reference;

TEST(MuonReference, Defaults) {
  run({MuonOptions(0.02), torch::kFloat32, ref::kDefaultsParams, ref::kDefaultsBuffers});
}

TEST(MuonReference, PlainMomentum) {
  run({MuonOptions(0.02).nesterov(false).momentum(0.9), torch::kFloat32, ref::kPlainMomentumParams,
       ref::kPlainMomentumBuffers});
}

TEST(MuonReference, MatchRms) {
  run({MuonOptions(0.01).weight_decay(0.25).adjust_lr_fn("match_rms_adamw"), torch::kFloat32,
       ref::kMatchRmsParams, ref::kMatchRmsBuffers});
}

TEST(MuonReference, OwnIteration) {
  run({MuonOptions(0.02).ns_steps(3).ns_coefficients({2.0, -1.5, 0.5}).eps(1e-3), torch::kFloat32,
       ref::kOwnIterationParams, ref::kOwnIterationBuffers});
}

TEST(MuonReference, BFloat16) {
  run({MuonOptions(0.02), torch::kBFloat16, ref::kBFloat16Params, ref::kBFloat16Buffers});
}

}  // namespace
}  // namespace optim_offload
