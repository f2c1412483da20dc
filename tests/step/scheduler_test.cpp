// The wrapper goes wherever an Optimizer& goes, and what is set on it arrives.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(Scheduler, StepLRDrivesEveryGroup) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode), even_and_odd);
    torch::optim::Optimizer& optimizer = *twins.wrapped;
    torch::optim::StepLR schedule(optimizer, 1, 0.5);
    torch::optim::StepLR plain_schedule(*twins.plain, 1, 0.5);
    for (int i = 0; i < 4; ++i) {
      twins.step();
      schedule.step();
      plain_schedule.step();
    }
    // LibTorch's StepLR leaves its first step without effect.
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.01 / 8);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), 0.015 / 8);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Scheduler, ReduceOnPlateau) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("SGD"), offload_options(mode));
    using torch::optim::ReduceLROnPlateauScheduler;
    ReduceLROnPlateauScheduler schedule(*twins.wrapped, ReduceLROnPlateauScheduler::min, 0.5f, 1);
    ReduceLROnPlateauScheduler plain_schedule(*twins.plain, ReduceLROnPlateauScheduler::min, 0.5f,
                                              1);
    for (int i = 0; i < 8; ++i) {
      twins.step();
      schedule.step(1.0f);
      plain_schedule.step(1.0f);
    }
    EXPECT_LT(twins.wrapped->param_groups()[0].options().get_lr(), 0.02);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Scheduler, OptionsKeepTheirIdentity) {
  for (const auto mode : kModes) {
    auto model = make_model(small_decoder(2), device.device());
    auto base = make_base(recipe("AdamW"), even_and_odd(model));
    std::vector<const torch::optim::OptimizerOptions*> expected;
    for (auto& group : base->param_groups()) expected.push_back(&group.options());
    CPUOffloadOptimizer wrapped(std::move(base), model.parameters, offload_options(mode));
    for (int step = 0; step < 3; ++step) {
      for (size_t g = 0; g < expected.size(); ++g) {
        EXPECT_EQ(&wrapped.param_groups()[g].options(), expected[g]) << "before step " << step;
      }
      set_gradients(model, step);
      wrapped.step();
    }
    EXPECT_TRUE(wrapped.base_optimizer().param_groups().empty());
    EXPECT_TRUE(wrapped.base_optimizer().state().empty());
    EXPECT_DOUBLE_EQ(wrapped.defaults().get_lr(), 0.01);
  }
}

OFFLOAD_TEST(Scheduler, AnyOptionChangedBetweenSteps) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024),
                even_and_odd);
    twins.steps(2);
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      auto& options =
          static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[1].options());
      options.betas({0.5, 0.75}).weight_decay(0.25).eps(1e-3);
    }
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

// Parameters that had no state get some when an option asks for it.
OFFLOAD_TEST(Scheduler, MomentumTurnedOnLater) {
  const Recipe sgd = {.name = "SGD", .make = [](const Groups& groups) {
                        return std::make_unique<torch::optim::SGD>(groups.at(0),
                                                                   torch::optim::SGDOptions(0.1));
                      }};
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), sgd, offload_options(mode, 1024));
    twins.steps(2);
    EXPECT_TRUE(twins.wrapped->state().empty());
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      static_cast<torch::optim::SGDOptions&>(optimizer->param_groups()[0].options()).momentum(0.9);
    }
    twins.steps(3);
    ASSERT_TRUE(twins.same());
    EXPECT_FALSE(twins.wrapped->state().empty());
  }
}

// A set_options() between steps gives the group another object.
OFFLOAD_TEST(Scheduler, OptionsObjectExchangedByTheUser) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024),
                even_and_odd);
    twins.steps(2);
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      optimizer->param_groups()[0].set_options(std::make_unique<torch::optim::AdamWOptions>(
          torch::optim::AdamWOptions(0.125).betas({0.5, 0.75})));
    }
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
