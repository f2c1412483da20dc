// Groups and state change hands: new groups, release, a second wrapper, destruction.
#include <thread>

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Adds a parameter to both models of the twins and to both optimizers, as a new group.
void grow(Twins& twins, const TestDevice& device, const std::string& name,
          std::vector<int64_t> shape, bool through_base_class) {
  for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
    model->parameters.insert(
        name, random_values(shape, 77, torch::kFloat32, device.device()).set_requires_grad(true));
  }
  using torch::optim::OptimizerParamGroup;
  twins.plain->add_param_group(OptimizerParamGroup({twins.plain_model[name]}));
  const OptimizerParamGroup group({twins.wrapped_model[name]});
  if (through_base_class) {
    static_cast<torch::optim::Optimizer&>(*twins.wrapped).add_param_group(group);
  } else {
    twins.wrapped->add_param_group(group);
  }
}

OFFLOAD_TEST(Lending, AddParamGroupBetweenSteps) {
  for (const auto& recipe : recipes()) {
    if (!recipe.grows) continue;
    for (const auto mode : kModes) {
      for (const bool through_base_class : {false, true}) {
        SCOPED_TRACE(recipe.name + " " + to_string(mode));
        Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024));
        grow(twins, device, "before.the.first.step", {13, 7}, through_base_class);
        twins.steps(2);
        grow(twins, device, "adapter.layers.7.weight", {31, 11}, through_base_class);
        twins.steps(3);
        ASSERT_TRUE(twins.same());
        EXPECT_EQ(twins.wrapped->param_groups().size(), twins.plain->param_groups().size());
      }
    }
  }
}

OFFLOAD_TEST(Lending, AddParamGroupKeepsAUsersOptions) {
  for (const auto mode : kModes) {
    auto model = make_model(small_decoder(1), device.device());
    auto tensors = model.tensors();
    const std::vector<torch::Tensor> rest(tensors.begin() + 1, tensors.end());
    CPUOffloadOptimizer wrapped(make_base(recipe("NormBlend"), {rest}), model.parameters,
                                offload_options(mode));
    wrapped.add_param_group(torch::optim::OptimizerParamGroup(
        {tensors[0]}, std::make_unique<BlendOptions>(BlendOptions(0.25).mix(0.5))));
    auto& options = static_cast<BlendOptions&>(wrapped.param_groups().at(1).options());
    EXPECT_EQ(options.lr(), 0.25);
    EXPECT_EQ(options.mix(), 0.5);
    EXPECT_THROW(wrapped.add_param_group(torch::optim::OptimizerParamGroup({tensors[0]})),
                 c10::Error);
    EXPECT_EQ(wrapped.param_groups().size(), 2u);
    set_gradients(model, 1);
    wrapped.step();
  }
}

// Between steps the groups are the wrapper's, and a user may edit them in place.
OFFLOAD_TEST(Lending, ParametersAddedAndRemovedInPlace) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      auto& parameters = optimizer->param_groups()[0].params();
      parameters.erase(parameters.begin() + 2);
    }
    twins.steps(2);
    ASSERT_TRUE(twins.same());
    for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
      model->parameters.insert(
          "late",
          random_values({9, 9}, 5, torch::kFloat32, device.device()).set_requires_grad(true));
    }
    twins.plain->param_groups()[0].params().push_back(twins.plain_model["late"]);
    twins.wrapped->param_groups()[0].params().push_back(twins.wrapped_model["late"]);
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Lending, ReleasedBaseGoesOnAsPlain) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024), even_and_odd);
      twins.steps(3);
      auto* expected = &twins.wrapped->base_optimizer();
      auto base = twins.wrapped->release();
      ASSERT_EQ(base.get(), expected);
      twins.wrapped.reset();  // What was released no longer needs it.
      EXPECT_TRUE(same_snapshot(snapshot(*twins.plain), snapshot(*base)));
      for (int step = 0; step < 2; ++step) {
        twins.gradients();
        twins.plain->step();
        base->step();
      }
      ASSERT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model));
      EXPECT_TRUE(same_snapshot(snapshot(*twins.plain), snapshot(*base)));

      // And into a wrapper of another mode.
      const auto other = mode == Mode::Streamed ? Mode::AllAtOnce : Mode::Streamed;
      twins.wrapped = std::make_unique<CPUOffloadOptimizer>(
          std::move(base), twins.wrapped_model.parameters, offload_options(other, 2048));
      twins.steps(2);
      ASSERT_TRUE(twins.same());
    }
  }
}

OFFLOAD_TEST(Lending, ReleasedStateLiesOnTheParametersDevice) {
  Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(Mode::Streamed, 1024));
  twins.steps(2);
  auto base = twins.wrapped->release();
  for (auto& entry : base->state()) {
    auto& state = static_cast<torch::optim::AdamWParamState&>(*entry.second);
    EXPECT_EQ(state.exp_avg().device(), device.device());
    EXPECT_EQ(state.exp_avg_sq().device(), device.device());
  }
}

OFFLOAD_TEST(Lending, EmptyAfterRelease) {
  Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(Mode::Streamed));
  twins.step();
  auto base = twins.wrapped->release();
  EXPECT_THROW(twins.wrapped->step(), c10::Error);
  EXPECT_THROW(saved(*twins.wrapped), c10::Error);
  EXPECT_THROW(twins.wrapped->release(), c10::Error);
  EXPECT_THROW(twins.wrapped->base_optimizer(), c10::Error);
  EXPECT_THROW(load_saved(*twins.wrapped, saved(*base)), c10::Error);
}

OFFLOAD_TEST(Lending, ReleasedBeforeTheFirstStep) {
  Twins twins(device, small_decoder(1), recipe("Adagrad"), offload_options(Mode::Streamed, 1024));
  auto base = twins.wrapped->release();
  twins.gradients();
  twins.plain->step();
  base->step();
  EXPECT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model));
}

OFFLOAD_TEST(Lending, DestroyedInTheMiddle) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("Adam"), offload_options(mode, 1024));
    twins.steps(2);
    const auto archive = saved(*twins.wrapped);
    twins.wrapped.reset();
    auto base = make_base(recipe("Adam"), {twins.wrapped_model.tensors()});
    load_saved(*base, archive, device.device());
    twins.gradients();
    twins.plain->step();
    base->step();
    EXPECT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model));
  }
}

OFFLOAD_TEST(Lending, MadeInOneThreadSteppedInOthers) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    for (int step = 0; step < 3; ++step) {
      twins.gradients();
      twins.plain->step();
      std::thread([&] { twins.wrapped->step(); }).join();
    }
    std::thread([&] { ASSERT_TRUE(twins.same()); }).join();
    std::thread([&] { twins.wrapped.reset(); }).join();
  }
}

OFFLOAD_TEST(Lending, TwoWrappersAlternately) {
  for (const auto first_mode : kModes) {
    for (const auto second_mode : kModes) {
      Twins first(device, small_decoder(2), recipe("AdamW"), offload_options(first_mode, 1024));
      Twins second(device, small_decoder(3), recipe("SGD"), offload_options(second_mode, 2048),
                   even_and_odd, /*seed=*/9);
      for (int step = 0; step < 3; ++step) {
        first.step();
        second.step();
      }
      ASSERT_TRUE(first.same());
      ASSERT_TRUE(second.same());
      first.wrapped.reset();
      second.steps(2);
      ASSERT_TRUE(second.same());
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
