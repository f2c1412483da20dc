// Element-wise optimizers of a user's own, whose parameters are cut into tiles, that do in step()
// what LibTorch's own never do.
#include <gtest/gtest.h>

#include <torch/serialize/archive.h>
#include <torch/types.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

void take_mean(const torch::Tensor& parameter, BlendParamState& state) {
  state.fast().mul_(0.9).add_(parameter.grad());
}

/// Empties its gradients, so that the loop need not.
class ZeroGradBlend : public Blend {
 public:
  using Blend::Blend;
  torch::Tensor step(LossClosure closure = nullptr) override {
    torch::Tensor loss = Blend::step(std::move(closure));
    zero_grad();
    return loss;
  }
};

/// Leaves frozen parameters alone, though they have a gradient.
class FrozenBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    if (parameter.requires_grad()) Blend::update(parameter, options, state);
  }
};

/// Exchanges its two tensors each step.
class ExchangingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    take_mean(parameter, state);
    parameter.sub_(state.fast() + state.slow(), 0.01);
    std::swap(state.fast(), state.slow());
  }
};

/// Puts a new tensor in the parameter's place.
class SetDataBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    take_mean(parameter, state);
    parameter.set_data(parameter - 0.01 * state.fast());
  }
};

/// Writes the one tensor only where it is there.
struct DroppingParamState : BlendParamState {
  DroppingParamState(const BlendParamState& state) : BlendParamState(state) {}
  std::unique_ptr<torch::optim::OptimizerParamState> clone() const override {
    return std::make_unique<DroppingParamState>(*this);
  }
  void serialize(torch::serialize::OutputArchive& archive) const override {
    if (fast().defined()) archive.write("fast", fast(), /*is_buffer=*/true);
    archive.write("slow", slow(), /*is_buffer=*/true);
  }
};

/// Lets go of one tensor in step 2, and makes the other anew in each.
class DroppingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    return std::make_unique<DroppingParamState>(*Blend::make_state(parameter));
  }
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    state.steps(state.steps() + 1);
    if (state.steps() == 2) state.fast(torch::Tensor());
    state.slow(state.slow() * 0.9 + parameter.grad());
    parameter.sub_(state.slow(), 0.01);
  }
};

/// Puts a new tensor in the gradient's place.
class NewGradientBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    take_mean(parameter, state);
    parameter.sub_(state.fast(), 0.01);
    parameter.mutable_grad() = parameter.grad() * 0.5;
  }
};

/// Keeps the gradient itself, and not a copy.
class GradientBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    parameter.sub_(parameter.grad() + state.fast(), 0.01);
    state.fast(parameter.grad());
  }
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = Blend::make_state(parameter);
    state->fast(parameter.grad());
    return state;
  }
};

template <typename T>
Recipe element_wise() {
  set_optimizer_traits<T>({.element_wise = true});
  return recipe_of<T>("element-wise", true);
}

/// The same class without its traits: parameters are not cut.
template <typename T>
Recipe whole_parameters() {
  set_optimizer_traits<T>({});
  return recipe_of<T>("whole");
}

void expect_same_gradients(const Twins& twins) {
  for (const auto& item : twins.plain_model.parameters) {
    EXPECT_EQ(item.value().grad().defined(),
              twins.wrapped_model.parameters[item.key()].grad().defined())
        << item.key();
  }
}

/// The plain optimizer's bits after each step; parameters are cut in chunked modes.
template <typename Base, typename Step>
void expect_equal_in_tiles(const TestDevice& device, int steps, const Step& do_step) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), element_wise<Base>(), offload_options(mode));
    for (int step = 0; step < steps; ++step) {
      do_step(twins, step);
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
    if (mode != Mode::AllAtOnce && device.copies()) {
      EXPECT_GT(twins.wrapped->stats().tiles, 0);
    }
  }
}

void step_both(Twins& twins, int /*step*/) { twins.step(); }

OFFLOAD_TEST(UnusualTiles, OfOneThatCallsZeroGrad) {
  expect_equal_in_tiles<ZeroGradBlend>(device, 4, [](Twins& twins, int /*step*/) {
    twins.step();
    expect_same_gradients(twins);
  });
}

OFFLOAD_TEST(UnusualTiles, OfOneThatLeavesFrozenParametersAlone) {
  expect_equal_in_tiles<FrozenBlend>(device, 6, [](Twins& twins, int step) {
    twins.gradients();
    for (Model* model : {&twins.plain_model, &twins.wrapped_model}) {
      for (auto& tensor : model->tensors()) tensor.set_requires_grad(step % 3 != 2);
    }
    twins.plain->step();
    twins.wrapped->step();
  });
}

OFFLOAD_TEST(UnusualTiles, OfOneThatExchangesTensorsOfATile) {
  expect_equal_in_tiles<ExchangingBlend>(device, 5, step_both);
}

OFFLOAD_TEST(UnusualTiles, OfOneThatDropsATensorOfATile) {
  expect_equal_in_tiles<DroppingBlend>(device, 5, step_both);
}

/// An error in tiles, with `part` in its message; the plain optimizer's bits where it may not be
/// cut.
template <typename Base>
void expect_refused_in_tiles(const TestDevice& device, const char* part) {
  if (!device.copies()) return;
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), element_wise<Base>(), offload_options(mode));
    EXPECT_HAS(error_text([&] { twins.step(); }), part);
    Twins whole(device, small_decoder(2), whole_parameters<Base>(), offload_options(mode));
    whole.steps(3);
    EXPECT_TRUE(whole.same());
  }
}

OFFLOAD_TEST(UnusualTiles, RefuseAnotherTensorInAParametersPlace) {
  expect_refused_in_tiles<SetDataBlend>(device, "put another tensor in a parameter's place");
}

OFFLOAD_TEST(UnusualTiles, RefuseAnotherTensorInAGradientsPlace) {
  expect_refused_in_tiles<NewGradientBlend>(device, "put another tensor in a gradient's place");
}

OFFLOAD_TEST(UnusualTiles, RefuseStateThatIsTheGradient) {
  expect_refused_in_tiles<GradientBlend>(device, "shares memory");
}

}  // namespace
}  // namespace optim_offload::testing
