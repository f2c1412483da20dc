// What OffloadOptions::verify finds, and how it says so.
#include <gtest/gtest.h>
#include <torch/serialize/archive.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/error_text.h"
#include "support/twins.h"
#include "transfer/order_check.h"
#include "transfer/simulated_device.h"
#include "transfer/wait_point.h"

namespace optim_offload::testing {
namespace {

/// Steps until verify finds something; gives what it says, or nothing.
std::string found_by_verify(Twins& twins, int steps) {
  try {
    for (int step = 0; step < steps; ++step) twins.step();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return {};
}

/// Its updates depend on a norm, but its traits say element_wise.
class WrongNormBlend : public NormBlend {
 public:
  using NormBlend::NormBlend;
};

TEST(VerifyCatches, AnOptimizerWronglyDeclaredElementWise_Simulated) {
  set_optimizer_traits<WrongNormBlend>({.element_wise = true});
  TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<WrongNormBlend>("WrongNormBlend", true),
                offload_options(mode, 1024).verify(3));
    const auto what = found_by_verify(twins, 3);
    EXPECT_HAS(what, "[optim_offload] verify: step 1 differs from the plain optimizer's");
    EXPECT_HAS(what, "parameter model.embed_tokens.weight, element [");
    EXPECT_HAS(what, "] of [37, 19] is ");
    EXPECT_HAS(what, " and should be ");
    EXPECT_HAS(what, "mend its traits");
  }
  // All at once it is right.
  Twins twins(device, small_decoder(1), recipe_of<WrongNormBlend>("WrongNormBlend", true),
              offload_options(Mode::AllAtOnce).verify(3));
  EXPECT_EQ(found_by_verify(twins, 3), "");
}

/// Scales its gradients by a norm, after it has used them, but its traits say element_wise.
class WrongGradientBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    Blend::update(parameter, options, state);
    parameter.grad().div_(parameter.grad().norm() + 1);
  }
};

TEST(VerifyCatches, AGradientThatIsChangedInTiles_Simulated) {
  set_optimizer_traits<WrongGradientBlend>({.element_wise = true});
  TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<WrongGradientBlend>("gradient", true),
                offload_options(mode, 1024).verify(1));
    EXPECT_HAS(found_by_verify(twins, 1), "(gradient of model.embed_tokens.weight, element [");
  }
}

/// Replaces its tensors, but its traits say that it does not.
class WrongReplacingBlend : public ReplacingBlend {
 public:
  using ReplacingBlend::ReplacingBlend;
};

TEST(VerifyCatches, AnOptimizerWronglyDeclaredOfFixedState_Simulated) {
  set_optimizer_traits<WrongReplacingBlend>({.element_wise = true, .fixed_state = true});
  TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<WrongReplacingBlend>("WrongReplacingBlend"),
                offload_options(mode, 1024).verify(4));
    EXPECT_HAS(found_by_verify(twins, 4), "verify: step 2 differs");
  }
}

/// Counts its calls in a member, which pieces make more of.
class CallCountingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void begin_step() override { ++calls_; }
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    Blend::update(parameter, options, state);
    parameter.mul_(1 - 0.001 * calls_);
  }

 private:
  int calls_ = 0;
};

OFFLOAD_TEST(VerifyCatches, StateOutsideOfState) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe_of<CallCountingBlend>("CallCountingBlend"),
                offload_options(mode, 1024).verify(1));
    EXPECT_HAS(found_by_verify(twins, 1), "verify: step 1 differs");
  }
}

#if !defined(__SANITIZE_THREAD__)  // It would find the race first.
// A wait that is not made: what verify is for where the library itself is wrong.
TEST(VerifyCatches, ALostWait_Simulated) {
  const transfer::ScopedSimulatedDevice simulated({.delay = std::chrono::milliseconds(1),
                                                   .poison = true,
                                                   .without = transfer::WaitPoint::SlotFree});
  const TestDevice device(DeviceKind::Cpu);
  Twins twins(device, small_decoder(2), recipe("AdamW"),
              offload_options(Mode::Streamed, 1024).verify(4));
  const auto what = found_by_verify(twins, 4);
  EXPECT_HAS(what, "verify: step ");
  EXPECT_HAS(what, "differs from the plain optimizer's");
  twins.wrapped.reset();
  EXPECT_FALSE(transfer::simulated_device_order()->take_errors().empty());
}
#endif

TEST(VerifyCatches, TheStepIsDoneAndAllIsInPlace_Simulated) {
  set_optimizer_traits<WrongNormBlend>({.element_wise = true});
  TestDevice device(DeviceKind::Simulated);
  Twins twins(device, small_decoder(1), recipe_of<WrongNormBlend>("WrongNormBlend", true),
              offload_options(Mode::Streamed, 1024).verify(1));
  EXPECT_NE(found_by_verify(twins, 1), "");
  EXPECT_EQ(twins.wrapped->stats().steps, 1);
  EXPECT_EQ(twins.wrapped->param_groups().size(), 1u);
  twins.restart_plain_from_wrapped();
  ASSERT_TRUE(twins.same());
  EXPECT_NO_THROW(twins.wrapped->step()) << "only the first step is compared";
}

/// Hides a tensor behind a copy, which cannot be found, and so not be led to other memory.
struct CopyingState : torch::optim::OptimizerCloneableParamState<CopyingState> {
  torch::Tensor buffer;
  void serialize(torch::serialize::OutputArchive& archive) const override {
    archive.write("buffer", buffer.clone(), /*is_buffer=*/true);
  }
  void serialize(torch::serialize::InputArchive& archive) override {
    archive.read("buffer", buffer, /*is_buffer=*/true);
  }
};

class Copying : public torch::optim::Optimizer {
 public:
  explicit Copying(const std::vector<torch::optim::OptimizerParamGroup>& groups)
      : Optimizer(groups, std::make_unique<BlendOptions>()) {}
  torch::Tensor step(LossClosure) override {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : param_groups_[0].params()) {
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) {
        auto made = std::make_unique<CopyingState>();
        made->buffer = torch::zeros_like(parameter);
        state = std::move(made);
      }
      auto& buffer = static_cast<CopyingState&>(*state).buffer;
      buffer.add_(parameter.grad());
      parameter.sub_(buffer, 0.01);
    }
    return {};
  }
};

OFFLOAD_TEST(VerifyCatches, StateThatItCannotCopy) {
  Twins twins(device, small_decoder(1), recipe_of<Copying>("Copying"),
              offload_options(Mode::AllAtOnce).verify(2));
  twins.step();  // There is no state yet.
  const auto what = found_by_verify(twins, 1);
  EXPECT_HAS(what, "verify cannot copy a state whose serialize() writes a copy");
  EXPECT_HAS(what, "CopyingState");
}

}  // namespace
}  // namespace optim_offload::testing
