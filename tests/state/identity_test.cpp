// What the state's tensors are, where they lie and what they share may change from step to step.
#include <gtest/gtest.h>

#include <fstream>

#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>

#include "state/state_tensors.h"
#include "support/blend.h"
#include "support/compare.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Exchanges its two tensors each step, so that each is found in the other's place.
class SwappingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    Blend::update(parameter, options, state);
    const torch::Tensor fast = state.fast();
    state.fast(state.slow().abs_());
    state.slow(fast.abs_());
  }
};

/// Holds one tensor under two handles.
class TwoHandlesBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = Blend::make_state(parameter);
    state->slow(state->fast().detach());
    return state;
  }
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    state.fast().add_(parameter.grad());
    parameter.add_(state.slow(), -0.01);
  }
};

OFFLOAD_TEST(Identity, TensorsThatChangePlaces) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<SwappingBlend>("SwappingBlend"),
                offload_options(mode));
    for (int step = 0; step < 6; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(Identity, TensorsThatShareMemoryStayTogether) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<TwoHandlesBlend>("TwoHandlesBlend"),
                offload_options(mode));
    for (int step = 0; step < 4; ++step) {
      twins.step();
      for (const auto& item : twins.plain_model.parameters) {
        ASSERT_TRUE(same_tensor(item.value(), twins.wrapped_model[item.key()]))
            << "at step " << step;
      }
    }
  }
}

OFFLOAD_TEST(Identity, LbfgsWithAFullHistory) {
  const Recipe lbfgs{.name = "LBFGS", .make = [](const Groups& groups) {
                       auto options = torch::optim::LBFGSOptions(0.05).max_iter(2).history_size(3);
                       return std::make_unique<torch::optim::LBFGS>(groups.at(0), options);
                     }};
  Twins twins(device, small_decoder(1), lbfgs, offload_options(Mode::AllAtOnce));
  for (int step = 0; step < 6; ++step) {
    int i = 0;
    for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
      torch::optim::Optimizer& optimizer =
          i++ == 0 ? *twins.plain : static_cast<torch::optim::Optimizer&>(*twins.wrapped);
      optimizer.step([&] {
        optimizer.zero_grad();
        torch::Tensor loss = torch::zeros({}, device.device());
        for (const auto& item : model->parameters) loss = loss + (item.value() - 0.3).pow(4).sum();
        loss.backward();
        return loss;
      });
    }
    // LibTorch cannot save the state of LBFGS with a full history, so that only parameters are
    // compared.
    for (const auto& item : twins.plain_model.parameters) {
      ASSERT_TRUE(same_tensor(item.value(), twins.wrapped_model[item.key()])) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(Identity, ParameterThatGetsAnotherLayout) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const std::vector<ParamSpec> specs = {{"model.layers.0.conv", {8, 16, 5, 5}}};
    Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
      torch::Tensor& conv = (*model)["model.layers.0.conv"];
      conv.set_data(conv.detach().contiguous(torch::MemoryFormat::ChannelsLast));
    }
    for (int step = 2; step < 5; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

TEST(Identity, ModelMovedAfterItWasWrapped_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  TestDevice device(DeviceKind::Cpu);
  for (const auto mode : kModes) {
    for (const int steps_before : {0, 2}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", after " << steps_before);
      Model model = make_model(small_decoder(2), torch::kCPU);
      CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                  offload_options(mode, 1024));
      for (int step = 0; step < steps_before; ++step) {
        set_gradients(model, 7 + static_cast<uint64_t>(step));
        wrapped.step();
      }
      for (auto& item : model.parameters) {
        item.value().set_data(item.value().detach().to(torch::kCUDA));
        item.value().mutable_grad() = torch::Tensor();
      }
      for (int step = 0; step < 3; ++step) {
        set_gradients(model, 17 + static_cast<uint64_t>(step));
        wrapped.step();
      }
      EXPECT_GT(wrapped.stats().h2d_bytes, 0);
      EXPECT_EQ(wrapped.stats().h2d_bytes, wrapped.stats().d2h_bytes);
    }
  }
}

TEST(Identity, LookingUpStateLeavesNoMemoryBehind) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps memory that was freed";
#endif
  const auto resident_kib = [] {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word && word != "VmRSS:") {
    }
    int64_t kib = 0;
    status >> kib;
    return kib;
  };
  torch::optim::AdamWParamState state;
  state.exp_avg(torch::zeros({4}));
  state.exp_avg_sq(torch::zeros({4}));
  const auto look_up = [&](int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(state::find_state_tensors(state).size(), 2u);
  };
  look_up(2000);
  const int64_t before = resident_kib();
  look_up(20000);
  // A class of about 2 KB was left behind by each look-up: 40 MB.
  EXPECT_LT(resident_kib() - before, 8 << 10);
}

}  // namespace
}  // namespace optim_offload::testing
