// OffloadOptions::verify changes nothing where all is right.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(Verify, AgreesWithThePlainOptimizer) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024).verify(3),
                  even_and_odd);
      for (int step = 0; step < 5; ++step) {
        ASSERT_NO_THROW(twins.step());
        ASSERT_TRUE(twins.same()) << "at step " << step;
      }
    }
  }
}

OFFLOAD_TEST(Verify, UsersOptimizers) {
  for (const auto& recipe : {recipe_of<ReplacingBlend>("ReplacingBlend"),
                             recipe_of<GroupCounterBlend>("GroupCounterBlend")}) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024).verify(3),
                  even_and_odd);
      ASSERT_NO_THROW(twins.steps(4));
      ASSERT_TRUE(twins.same());
    }
  }
}

std::vector<ParamSpec> of_every_kind() {
  auto specs = small_decoder(1, torch::kBFloat16);
  specs.push_back({.name = "conv.weight", .shape = {8, 6, 3, 3}, .layout = Layout::ChannelsLast});
  specs.push_back({.name = "strided", .shape = {24, 18}, .layout = Layout::Strided});
  specs.push_back({.name = "transposed", .shape = {24, 18}, .layout = Layout::Transposed});
  specs.push_back({.name = "frozen", .shape = {24, 18}, .requires_grad = false});
  specs.push_back({.name = "scalar", .shape = {}});
  specs.push_back({.name = "empty", .shape = {0, 4}});
  specs.push_back({.name = "double", .shape = {9, 5}, .dtype = torch::kFloat64});
  return specs;
}

OFFLOAD_TEST(Verify, TypesLayoutsAndAbsentGradients) {
  for (const auto* name : {"AdamW", "SGD", "NormBlend"}) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(std::string(name) + " " + to_string(mode));
      Twins twins(device, of_every_kind(), recipe(name), offload_options(mode, 1024).verify(6),
                  even_and_odd);
      for (size_t step = 0; step < 6; ++step) {
        ASSERT_NO_THROW(
            twins.step([&](size_t i, const std::string&) { return (i + step) % 3 != 0; }));
      }
      ASSERT_TRUE(twins.same());
    }
  }
}

OFFLOAD_TEST(Verify, SparseGradients) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("SGD"), offload_options(mode, 1024).verify(3));
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      auto& options =
          static_cast<torch::optim::SGDOptions&>(optimizer->param_groups()[0].options());
      options.momentum(0).nesterov(false).weight_decay(0);
    }
    for (int step = 0; step < 3; ++step) {
      twins.gradients();
      for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
        auto& embedding = (*model)["model.embed_tokens.weight"];
        embedding.mutable_grad() = embedding.grad().slice(0, 0, 5).clone().to_sparse(1);
        embedding.mutable_grad() = torch::sparse_coo_tensor(
            embedding.grad().indices(), embedding.grad().values(), embedding.sizes());
      }
      twins.plain->step();
      ASSERT_NO_THROW(twins.wrapped->step());
    }
    ASSERT_TRUE(twins.same());
  }
}

// The gradients that a closure leaves are the ones to compare with, and it may not be called twice.
OFFLOAD_TEST(Verify, CallsTheClosureOnce) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024).verify(2));
    for (int step = 0; step < 4; ++step) {
      twins.gradients();
      twins.plain->step();
      int calls = 0;
      const auto loss = twins.wrapped->step([&] {
        ++calls;
        EXPECT_TRUE(at::GradMode::is_enabled());
        EXPECT_EQ(twins.wrapped->param_groups().size(), 1u);
        return torch::full({}, 0.5);
      });
      EXPECT_EQ(calls, 1);
      EXPECT_EQ(loss.item<double>(), 0.5);
      ASSERT_TRUE(twins.same());
    }
  }
}

// State may share memory: with the parameter, with another tensor of the state.
class AliasingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter) override {
    auto state = Blend::make_state(parameter);
    state->fast(parameter.detach());
    return state;
  }
};

OFFLOAD_TEST(Verify, StateThatSharesTheParametersMemory) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe_of<AliasingBlend>("AliasingBlend"),
                offload_options(mode, 1024).verify(4));
    ASSERT_NO_THROW(twins.steps(4));
    EXPECT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model));
  }
}

/// Adds noise, so that drawing random numbers twice would show.
class NoisyBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    Blend::update(parameter, options, state);
    parameter.add_(torch::randn_like(parameter), 0.01);
  }
};

OFFLOAD_TEST(Verify, DrawsNoRandomNumbersOfItsOwn) {
  for (const bool verify : {false, true}) {
    Twins twins(device, small_decoder(1), recipe_of<NoisyBlend>("NoisyBlend"),
                offload_options(Mode::AllAtOnce).verify(verify ? 3 : 0));
    for (int step = 0; step < 4; ++step) {
      twins.gradients();
      torch::manual_seed(step);
      twins.plain->step();
      torch::manual_seed(step);
      ASSERT_NO_THROW(twins.wrapped->step());
    }
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Verify, FromACheckpointOn) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("Adam"), offload_options(mode, 1024));
    twins.steps(2);
    twins.resume(offload_options(mode, 1024).verify(2));
    ASSERT_NO_THROW(twins.steps(3));
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
