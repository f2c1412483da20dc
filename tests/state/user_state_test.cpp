// State of types that the library has never seen, and state that exists already.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(UserState, ReplacedTensorsAreFollowed) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe_of<ReplacingBlend>("ReplacingBlend"),
                offload_options(mode, 4096), even_and_odd);
    for (int step = 0; step < 5; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(UserState, WithoutTraits) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(3), recipe_of<Blend>("Blend"), offload_options(mode, 1024),
                even_and_odd);
    twins.steps(4);
    ASSERT_TRUE(twins.same());
  }
}

/// Keeps state in a type that cannot write itself.
struct MuteState : torch::optim::OptimizerCloneableParamState<MuteState> {
  torch::Tensor buffer;
};

class Mute : public torch::optim::Optimizer {
 public:
  explicit Mute(const std::vector<torch::optim::OptimizerParamGroup>& groups)
      : Optimizer(groups, std::make_unique<BlendOptions>()) {}
  torch::Tensor step(LossClosure) override {
    torch::NoGradGuard no_grad;
    for (auto& group : param_groups_) {
      for (auto& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        auto& state = state_[parameter.unsafeGetTensorImpl()];
        if (!state) {
          auto made = std::make_unique<MuteState>();
          made->buffer = torch::zeros_like(parameter);
          state = std::move(made);
        }
        auto& buffer = static_cast<MuteState&>(*state).buffer;
        buffer.add_(parameter.grad());
        parameter.sub_(buffer.mul(0.01));
      }
    }
    return {};
  }
};

OFFLOAD_TEST(UserState, WithoutSerializeIsAnErrorThatNamesTheType) {
  if (!device.copies()) return;  // Nothing needs to be found where nothing is copied.
  for (const auto mode : kModes) {
    auto model = make_model(small_decoder(1), device.device());
    CPUOffloadOptimizer wrapped(make_base(recipe_of<Mute>("Mute"), {model.tensors()}),
                                model.parameters, offload_options(mode));
    set_gradients(model, 1);
    try {
      wrapped.step();
      FAIL() << "state of an unknown type was accepted in mode " << to_string(mode);
    } catch (const c10::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("[optim_offload]"), std::string::npos) << what;
      EXPECT_NE(what.find("MuteState"), std::string::npos) << what;
      EXPECT_NE(what.find("serialize"), std::string::npos) << what;
    }
  }
}

// An optimizer that has already stepped is taken over with its state.
OFFLOAD_TEST(UserState, TakenOverInTheMiddle) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      auto plain_model = make_model(small_decoder(2), device.device());
      auto model = make_model(small_decoder(2), device.device());
      auto plain = make_base(recipe, even_and_odd(plain_model));
      auto base = make_base(recipe, even_and_odd(model));
      for (int step = 0; step < 3; ++step) {
        set_gradients(plain_model, step);
        set_gradients(model, step);
        plain->step();
        base->step();
      }
      CPUOffloadOptimizer wrapped(std::move(base), model.parameters, offload_options(mode));
      ASSERT_TRUE(same_snapshot(snapshot(*plain), snapshot(wrapped)));
      if (device.copies()) {
        EXPECT_GE(wrapped.stats().state_bytes, state_bytes(*plain) - 4 * 16);
      }
      for (int step = 3; step < 6; ++step) {
        set_gradients(plain_model, step);
        set_gradients(model, step);
        plain->step();
        wrapped.step();
      }
      ASSERT_TRUE(same_parameters(plain_model, model));
      ASSERT_TRUE(same_snapshot(snapshot(*plain), snapshot(wrapped)));
    }
  }
}

// The user may reset a parameter's state between steps, or write into it.
OFFLOAD_TEST(UserState, ErasedOrWrittenByTheUser) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    for (auto side : {0, 1}) {
      auto& model = side == 0 ? twins.plain_model : twins.wrapped_model;
      torch::optim::Optimizer& optimizer =
          side == 0 ? *twins.plain : static_cast<torch::optim::Optimizer&>(*twins.wrapped);
      optimizer.state().erase(model["model.layers.0.norm.weight"].unsafeGetTensorImpl());
      optimizer.state().erase(model["model.embed_tokens.weight"].unsafeGetTensorImpl());
      auto& state = static_cast<torch::optim::AdamWParamState&>(
          *optimizer.state().at(model["model.norm.weight"].unsafeGetTensorImpl()));
      state.exp_avg().mul_(0.5);
      state.step(7);
    }
    twins.steps(3);
    ASSERT_TRUE(twins.same());
  }
}

// Where all state lies between steps, and so what an expression of it gives.
OFFLOAD_TEST(UserState, ReplacedByOneOnTheHost) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    twins.steps(2);
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      for (auto& [key, object] : optimizer->state()) {
        auto& state = static_cast<BlendParamState&>(*object);
        state.count(state.count() * 3);
        state.slow(state.slow() * 0.5);
      }
    }
    twins.steps(2);
    EXPECT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(UserState, RestsOnTheHost) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode, 1024));
    for (int step = 0; step < 2; ++step) {
      twins.step();
      for (auto& entry : twins.wrapped->state()) {
        auto& state = static_cast<BlendParamState&>(*entry.second);
        EXPECT_TRUE(state.fast().is_cpu());
        EXPECT_TRUE(state.slow().is_cpu());
        EXPECT_TRUE(state.count().is_cpu());
        EXPECT_EQ(state.count().dim(), 0);
        EXPECT_EQ(state.count().item<float>(), static_cast<float>(step + 1));
        EXPECT_EQ(state.steps(), step + 1);
      }
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
