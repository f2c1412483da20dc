// Optimizers of a user's own that do in step() what LibTorch's own never do.
#include <gtest/gtest.h>

#include <torch/types.h>

#include "support/blend.h"
#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

void keep_mean(const torch::Tensor& parameter, BlendParamState& state) {
  state.fast().mul_(0.9).add_(parameter.grad());
}

/// All parameters count in one tensor.
class OneCounterBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = Blend::make_state(parameter);
    if (!counter_.defined()) counter_ = state->count();
    state->count(counter_);
    return state;
  }

 private:
  torch::Tensor counter_;
};

/// Changes the form of a state tensor in place: smaller, other strides, other memory, larger.
class ReformingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = Blend::make_state(parameter);
    state->slow(torch::ones({6, 4}, parameter.options()));
    return state;
  }
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    keep_mean(parameter, state);
    state.steps(state.steps() + 1);
    torch::Tensor& form = state.slow();
    if (state.steps() == 2) form.resize_({2, 4});
    if (state.steps() == 3) form.t_();
    if (state.steps() == 4) form.set_data(form + 1);
    if (state.steps() == 5) form.set_data(torch::ones({300}, form.options()));
    if (state.steps() == 7) form.resize_({3000});
    form.add_(1);
    parameter.sub_(state.fast() * form.sum(), 1e-4);
  }
};

OFFLOAD_TEST(UnusualBases, OneTensorInTheStateOfAllParameters) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<OneCounterBlend>("one"), offload_options(mode));
    EXPECT_HAS(error_text([&] { twins.step(); }), "two parameters have one state tensor");
  }
}

OFFLOAD_TEST(UnusualBases, FormChangedInPlace) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<ReformingBlend>("reform"),
                offload_options(mode));
    for (int step = 0; step < 6; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
    if (!device.copies()) continue;
    // Beyond its place in the slot.
    EXPECT_NE(error_text([&] { twins.step(); }), "");
    for (const auto& [key, state] : twins.wrapped->state()) {
      EXPECT_NE(static_cast<BlendParamState&>(*state).slow().storage().data(), nullptr);
    }
  }
}

OFFLOAD_TEST(UnusualBases, GradientOfAnotherShape) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    for (int step = 0; step < 3; ++step) {
      twins.gradients();
      for (Model* model : {&twins.plain_model, &twins.wrapped_model}) {
        for (auto& tensor : model->tensors()) {
          tensor.mutable_grad() = tensor.grad().slice(0, 0, 1).clone();
        }
      }
      twins.plain->step();
      twins.wrapped->step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
