// After a throw the state goes with the weights that the base has changed.
#include <gtest/gtest.h>

#include <torch/serialize/archive.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/compare.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Writes only what is there.
struct LateParamState : BlendParamState {
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<LateParamState>(*this);
  }
  using BlendParamState::serialize;
  void serialize(torch::serialize::OutputArchive& archive) const override {
    archive.write("fast", fast(), /*is_buffer=*/true);
    if (slow().defined()) archive.write("slow", slow(), /*is_buffer=*/true);
  }
};

/// Element-wise, but makes one tensor only in its second step: what tiles cannot follow.
class LateBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = std::make_unique<LateParamState>();
    state->fast(torch::zeros_like(parameter));
    return state;
  }
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    state.steps(state.steps() + 1);
    if (state.steps() < 2) {
      state.fast().add_(parameter.grad());
      return;
    }
    if (!state.slow().defined()) state.slow(torch::zeros_like(parameter));
    parameter.add_(state.fast() + state.slow(), -options.lr());
  }
};

OFFLOAD_TEST(Rescue, StateMadeInAStepThatThrows) {
  for (const auto mode : kModes) {
    for (const int fault : {2, 3, 5}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", parameter " << fault);
      Twins twins(device, small_decoder(3), recipe_of<FaultyBlend>("FaultyBlend"),
                  offload_options(mode, 8192));
      auto& base = static_cast<FaultyBlend&>(twins.wrapped->base_optimizer());
      base.fault_at = fault;
      twins.gradients();
      EXPECT_THROW(twins.wrapped->step(), c10::Error);
      base.fault_at = 0;
      // Each state that was made holds what one step from zero makes of its parameter's gradient.
      size_t made = 0;
      for (const auto& [key, state] : twins.wrapped->state()) {
        const auto& blend = static_cast<const BlendParamState&>(*state);
        if (blend.steps() == 0) continue;
        ++made;
        EXPECT_TRUE(blend.fast().isfinite().all().item<bool>());
        EXPECT_GT(blend.fast().abs().sum().item<double>(), 0);
      }
      EXPECT_GE(made, static_cast<size_t>(fault - 1));
      twins.restart_plain_from_wrapped();
      twins.steps(2);
      ASSERT_TRUE(twins.same());
    }
  }
}

TEST(Rescue, ATensorThatTilesCannotFollowIsAnError_Simulated) {
  set_optimizer_traits<LateBlend>({.element_wise = true});
  TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<LateBlend>("LateBlend", true),
                offload_options(mode, 1024));
    twins.gradients();
    twins.wrapped->step();
    try {
      twins.wrapped->step();
      FAIL() << "a late tensor was taken";
    } catch (const c10::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("do not declare it element_wise"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
