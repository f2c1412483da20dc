// The closure, and the optimizer that cannot do without it.
#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/optim/lbfgs.h>

#include "support/blend.h"
#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

torch::Tensor sum_of_squares(Model& model) {
  auto loss = torch::zeros({}, model.tensors()[0].options().requires_grad(false));
  for (const auto& tensor : model.tensors()) loss = loss + (tensor - 0.5).square().sum();
  return loss;
}

OFFLOAD_TEST(Closure, CalledOnceWithGradModeAndItsLossReturned) {
  for (const auto mode : kModes) {
    for (const bool caller_grad_mode : {true, false}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", grad mode " << caller_grad_mode);
      Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
      for (int step = 0; step < 3; ++step) {
        int calls = 0;
        torch::Tensor losses[2];
        int i = 0;
        for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
          torch::optim::Optimizer& optimizer =
              i == 0 ? *twins.plain : static_cast<torch::optim::Optimizer&>(*twins.wrapped);
          at::AutoGradMode grad_mode(caller_grad_mode);
          losses[i++] = optimizer.step([&] {
            ++calls;
            EXPECT_TRUE(at::GradMode::is_enabled());
            optimizer.zero_grad();
            auto loss = sum_of_squares(*model);
            loss.backward();
            return loss;
          });
          EXPECT_EQ(at::GradMode::is_enabled(), caller_grad_mode);
        }
        EXPECT_EQ(calls, 2) << "once for each optimizer";
        ASSERT_TRUE(losses[1].defined());
        EXPECT_TRUE(same_tensor(losses[0], losses[1]));
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

/// Evaluates the closure at other weights than it was called with.
class PerturbingBlend : public Blend {
 public:
  using Blend::Blend;
  torch::Tensor step(LossClosure closure = nullptr) override {
    {
      const at::NoGradGuard no_grad;
      for (auto& group : param_groups())
        for (auto& param : group.params()) param.mul_(1.01);
    }
    return Blend::step(std::move(closure));
  }
};

OFFLOAD_TEST(Closure, AtOtherWeights) {
  const auto closure_of = [](Model& model, torch::optim::Optimizer& optimizer) {
    return [&model, &optimizer] {
      optimizer.zero_grad();
      auto loss = sum_of_squares(model);
      loss.backward();
      return loss;
    };
  };
  for (const auto mode : kModes) {
    for (const int verify : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ", verify " << verify);
      Twins twins(device, small_decoder(2), recipe_of<PerturbingBlend>("perturbing"),
                  offload_options(mode).verify(verify));
      const auto step = [&] {
        twins.wrapped->step(closure_of(twins.wrapped_model, *twins.wrapped));
      };
      if (mode == Mode::AllAtOnce && verify == 0) {
        step();
        twins.plain->step(closure_of(twins.plain_model, *twins.plain));
        EXPECT_TRUE(twins.same());
      } else {
        EXPECT_HAS(error_text(step), "changes weights before it evaluates the closure");
      }
    }
  }
}

OFFLOAD_TEST(Closure, NoneGivesAnUndefinedLoss) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode));
    twins.gradients();
    EXPECT_FALSE(twins.wrapped->step().defined());
  }
}

// The closure may look at groups and state: they are the wrapper's while it runs in chunked modes.
OFFLOAD_TEST(Closure, SeesTheWrappersGroups) {
  for (const auto mode : kChunkedModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.step();
    twins.gradients();
    twins.plain->param_groups()[0].options().set_lr(0.5);
    twins.plain->step();
    twins.wrapped->step([&] {
      EXPECT_EQ(twins.wrapped->param_groups().size(), 1u);
      EXPECT_EQ(twins.wrapped->param_groups()[0].params().size(),
                twins.wrapped_model.parameters.size());
      twins.wrapped->param_groups()[0].options().set_lr(0.5);
      return torch::zeros({});
    });
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Closure, WhatNeedsTheStepsEndIsRefused) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.step();
    auto archive = saved(*twins.wrapped);
    twins.gradients();
    twins.plain->step();
    twins.wrapped->step([&] {
      const auto within = [&](const char* name, const auto& call) {
        EXPECT_EQ(error_text(call), std::string("[optim_offload] ") + name +
                                        " was called within step(), as by its closure; call it "
                                        "between steps");
      };
      within("step()", [&] { twins.wrapped->step(); });
      within("release()", [&] { twins.wrapped->release(); });
      within("load()", [&] { load_saved(*twins.wrapped, archive); });
      if (mode == Mode::AllAtOnce) {
        EXPECT_HAS(error_text([&] { saved(*twins.wrapped); }), "save() was called by the closure");
      } else {
        EXPECT_EQ(saved(*twins.wrapped), archive) << "nothing has been lent yet";
      }
      return torch::zeros({});
    });
    ASSERT_TRUE(twins.same());
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

// A step that threw in its closure is over.
OFFLOAD_TEST(Closure, AfterOneThatThrewAllCallsWork) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    twins.step();
    EXPECT_THROW(twins.wrapped->step([]() -> torch::Tensor { throw std::runtime_error("no"); }),
                 std::runtime_error);
    twins.resume(offload_options(mode, 1024));
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(BaseOptimizer, AGroupThatItWasGivenIsRefused) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    auto& base = twins.wrapped->base_optimizer();
    base.add_param_group(torch::optim::OptimizerParamGroup({torch::ones({3})}));
    EXPECT_HAS(error_text([&] { twins.wrapped->step(); }),
               "the base has parameter groups of its own (1)");
    base.param_groups().clear();
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

Recipe lbfgs() {
  return {.name = "LBFGS", .make = [](const Groups& groups) {
            return std::make_unique<torch::optim::LBFGS>(
                groups.at(0), torch::optim::LBFGSOptions(0.5).max_iter(4).history_size(3));
          }};
}

OFFLOAD_TEST(Lbfgs, AllAtOnceEqualsPlain) {
  Twins twins(device, small_decoder(2), lbfgs(), offload_options(Mode::AllAtOnce));
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {  // Its lists of tensors go through an archive as well.
      twins.resume(offload_options(Mode::AllAtOnce));
    }
    torch::Tensor losses[2];
    int i = 0;
    for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
      torch::optim::Optimizer& optimizer =
          i == 0 ? *twins.plain : static_cast<torch::optim::Optimizer&>(*twins.wrapped);
      losses[i++] = optimizer.step([&] {
        optimizer.zero_grad();
        // Not a quadratic: it must take several iterations.
        auto loss = sum_of_squares(*model).square() + sum_of_squares(*model);
        loss.backward();
        return loss;
      });
    }
    EXPECT_TRUE(same_tensor(losses[0], losses[1]));
    ASSERT_TRUE(twins.same()) << "at step " << step;
  }
}

OFFLOAD_TEST(Lbfgs, RefusedChunked) {
  for (const auto mode : kChunkedModes) {
    auto model = make_model(small_decoder(1), device.device());
    try {
      CPUOffloadOptimizer wrapped(make_base(lbfgs(), {model.tensors()}), model.parameters,
                                  offload_options(mode));
      FAIL() << "LBFGS was taken in mode " << to_string(mode);
    } catch (const c10::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("[optim_offload]"), std::string::npos) << what;
      EXPECT_NE(what.find("LBFGS"), std::string::npos) << what;
      EXPECT_NE(what.find("chunked(false)"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
