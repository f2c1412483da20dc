// What OffloadOptions::verify cannot compare, or not make a plain step of: an error, and no change.
#include <gtest/gtest.h>
#include <torch/optim/lbfgs.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(VerifyRefuses, ABaseThatThrowsOnTheCopies) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe_of<FaultyBlend>("FaultyBlend"),
                offload_options(mode, 1024).verify(10));
    twins.steps(2);
    twins.gradients();
    dynamic_cast<FaultyBlend&>(twins.wrapped->base_optimizer()).fault_at = 3;
    try {
      twins.wrapped->step();
      FAIL() << "the fault was swallowed";
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      EXPECT_NE(what.find("planned fault"), std::string::npos) << what;
      EXPECT_NE(what.find("nothing has changed"), std::string::npos) << what;
    }
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(VerifyRefuses, ABaseThatNeedsTheClosureOften) {
  auto model = make_model(small_decoder(1), device.device());
  CPUOffloadOptimizer wrapped(
      std::make_unique<torch::optim::LBFGS>(model.tensors(), torch::optim::LBFGSOptions(0.5)),
      model.parameters, OffloadOptions().verify(1));
  const auto before = make_model(small_decoder(1), device.device());
  try {
    wrapped.step([&] {
      wrapped.zero_grad();
      auto loss = torch::zeros({}, model.tensors()[0].options().requires_grad(false));
      for (const auto& tensor : model.tensors()) loss = loss + (tensor - 0.5).square().sum();
      loss.backward();
      return loss;
    });
    FAIL() << "LBFGS was verified";
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    EXPECT_NE(what.find("closure more than once"), std::string::npos) << what;
    EXPECT_NE(what.find("verify(0)"), std::string::npos) << what;
  }
  EXPECT_TRUE(same_parameters(before, model));
}

TEST(VerifyRefuses, ANegativeNumberIsAnError_Cpu) {
  auto model = make_model(small_decoder(1), torch::kCPU);
  EXPECT_THROW(CPUOffloadOptimizer(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                   OffloadOptions().verify(-1)),
               c10::Error);
}

}  // namespace
}  // namespace optim_offload::testing
