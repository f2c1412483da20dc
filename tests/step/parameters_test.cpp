// Parameters of unusual shape, type, layout or name.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

const char* const kNames[] = {"SGD", "Adam", "Adagrad", "ElementwiseBlend", "NormBlend"};

void check(const TestDevice& device, const std::vector<ParamSpec>& specs,
           const Grouping& grouping = nullptr) {
  for (const auto* name : kNames) {
    for (const auto mode : kModes) {
      for (const int64_t piece_bytes : {1024, 1 << 16}) {
        SCOPED_TRACE(::testing::Message()
                     << name << " " << to_string(mode) << ", pieces of " << piece_bytes);
        Twins twins(device, specs, recipe(name), offload_options(mode, piece_bytes), grouping);
        twins.steps(3);
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

OFFLOAD_TEST(Parameters, EmptyAndZeroDimensional) {
  check(device, {{.name = "layers.0.empty", .shape = {0}},
                 {.name = "layers.0.scalar", .shape = {}},
                 {.name = "layers.1.empty", .shape = {4, 0, 3}},
                 {.name = "layers.1.weight", .shape = {5, 3}},
                 {.name = "scalar", .shape = {}},
                 {.name = "one", .shape = {1, 1, 1}},
                 {.name = "empty", .shape = {0, 7}}});
}

OFFLOAD_TEST(Parameters, NothingButEmpty) {
  check(device, {{.name = "layers.0.a", .shape = {0}}, {.name = "b", .shape = {3, 0}}});
}

OFFLOAD_TEST(Parameters, MixedTypesInOneGroup) {
  check(device,
        {{.name = "layers.0.a", .shape = {17, 5}, .dtype = torch::kFloat32},
         {.name = "layers.0.b", .shape = {3}, .dtype = torch::kBFloat16},
         {.name = "layers.0.c", .shape = {31, 9}, .dtype = torch::kFloat64},
         {.name = "layers.1.a", .shape = {701}, .dtype = torch::kBFloat16},
         {.name = "layers.1.b", .shape = {1}, .dtype = torch::kFloat16},
         {.name = "layers.1.c", .shape = {333}, .dtype = torch::kFloat64}},
        even_and_odd);
}

OFFLOAD_TEST(Parameters, ChannelsLastKeepsTheLayoutOfItsState) {
  const std::vector<ParamSpec> specs = {
      {.name = "layers.0.conv", .shape = {6, 5, 3, 3}, .layout = Layout::ChannelsLast},
      {.name = "layers.1.conv", .shape = {3, 2, 5, 3}, .layout = Layout::ChannelsLast},
      {.name = "stem", .shape = {16, 3, 7, 7}, .layout = Layout::ChannelsLast}};
  check(device, specs);
  Twins twins(device, specs, recipe("AdamW"), offload_options(Mode::Streamed, 1024));
  twins.steps(2);
  const auto now = snapshot(*twins.wrapped);
  for (const auto& fields : now.state[0]) {
    EXPECT_TRUE(fields.at("exp_avg").toTensor().is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

// Dense in another order, and not dense, so that state has another layout than its parameter.
OFFLOAD_TEST(Parameters, TransposedAndStrided) {
  check(device, {{.name = "layers.0.t", .shape = {21, 33}, .layout = Layout::Transposed},
                 {.name = "layers.0.s", .shape = {40, 10}, .layout = Layout::Strided},
                 {.name = "layers.1.s", .shape = {301}, .layout = Layout::Strided},
                 {.name = "layers.1.t", .shape = {3, 11, 9}, .layout = Layout::Transposed},
                 {.name = "layers.1.c", .shape = {3, 4}}});
}

// Gradients need not have the parameter's layout.
OFFLOAD_TEST(Parameters, GradientOfAnotherLayout) {
  for (const auto* name : kNames) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(std::string(name) + " " + to_string(mode));
      Twins twins(device,
                  {{.name = "layers.0.conv", .shape = {6, 5, 3, 3}, .layout = Layout::ChannelsLast},
                   {.name = "layers.0.weight", .shape = {33, 21}}},
                  recipe(name), offload_options(mode, 1024));
      for (int step = 0; step < 3; ++step) {
        twins.gradients();
        for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
          auto& conv = (*model)["layers.0.conv"];
          conv.mutable_grad() = conv.grad().contiguous();
          auto& weight = (*model)["layers.0.weight"];
          weight.mutable_grad() = weight.grad().t().contiguous().t();
        }
        twins.plain->step();
        twins.wrapped->step();
        ASSERT_TRUE(twins.same()) << "at step " << step;
      }
    }
  }
}

// As with the plain optimizer: a graph that has saved a weight cannot be used after it was stepped,
// whether whole or in tiles.
OFFLOAD_TEST(Parameters, AGraphNoticesThatItsWeightsWereStepped) {
  for (const auto mode : kModes) {
    for (const auto* name : {"model.embed_tokens.weight", "model.norm.weight"}) {
      SCOPED_TRACE(to_string(mode) + " " + name);
      Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
      twins.steps(2);
      auto loss = twins.wrapped_model[name].square().sum();
      twins.step();
      EXPECT_THROW(loss.backward(), c10::Error);
    }
  }
}

// LibTorch's SGD steps a sparse parameter, so the wrapped one does.
OFFLOAD_TEST(Parameters, OfASparseLayout) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    torch::Tensor results[2];
    for (const bool wraps : {false, true}) {
      const auto dense = random_values({4, 3}, 1, torch::kFloat32, device.device());
      auto param = dense.to_sparse().set_requires_grad(true);
      param.mutable_grad() = dense.to_sparse();
      std::unique_ptr<torch::optim::Optimizer> optimizer =
          std::make_unique<torch::optim::SGD>(std::vector<torch::Tensor>{param}, 0.5);
      if (wraps) {
        optimizer = std::make_unique<CPUOffloadOptimizer>(
            std::move(optimizer), torch::OrderedDict<std::string, torch::Tensor>(),
            offload_options(mode, 1024));
      }
      optimizer->step();
      optimizer->step();
      results[wraps] = param.detach().to_dense();
    }
    EXPECT_TRUE(same_tensor(results[0], results[1]));
  }
}

OFFLOAD_TEST(Parameters, OneTensorUnderTwoNames) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode));
    auto names = twins.wrapped_model.parameters;
    names.insert("lm_head.weight", names["model.embed_tokens.weight"]);
    names.insert("model.layers.0.tied.weight", names["model.norm.weight"]);
    auto base = make_base(recipe("AdamW"), {twins.wrapped_model.tensors()});
    twins.wrapped.reset();
    twins.wrapped =
        std::make_unique<CPUOffloadOptimizer>(std::move(base), names, offload_options(mode));
    twins.steps(3);
    ASSERT_TRUE(twins.same());
    EXPECT_EQ(twins.wrapped->state().size(), twins.wrapped_model.parameters.size());
    if (device.copies()) {
      // Each state once: two fp32 tensors for each element.
      EXPECT_LT(twins.wrapped->stats().state_bytes, state_bytes(*twins.plain) * 5 / 4);
    }
  }
}

OFFLOAD_TEST(Parameters, AwayFromTheGroupsForAStep) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode, 1024));
    twins.steps(2);
    torch::Tensor away[2];
    int i = 0;
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      auto& params = optimizer->param_groups()[0].params();
      away[i++] = params.back();
      params.pop_back();
    }
    twins.step();
    i = 0;
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      optimizer->param_groups()[0].params().push_back(away[i++]);
    }
    twins.steps(2);
    EXPECT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Parameters, WithoutAName) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode));
    torch::OrderedDict<std::string, torch::Tensor> names;
    names.insert("model.layers.0.norm.weight", twins.wrapped_model["model.layers.0.norm.weight"]);
    names.insert("not.in.any.group", torch::zeros({3}, device.device()));
    auto base = make_base(recipe("AdamW"), {twins.wrapped_model.tensors()});
    twins.wrapped.reset();
    twins.wrapped =
        std::make_unique<CPUOffloadOptimizer>(std::move(base), names, offload_options(mode));
    twins.steps(3);
    ASSERT_TRUE(twins.same());
  }
}

// Weights that the user changes between steps are the ones that the next step moves.
OFFLOAD_TEST(Parameters, ChangedByTheUserBetweenSteps) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    for (int step = 0; step < 3; ++step) {
      twins.step();
      for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
        (*model)["model.embed_tokens.weight"].detach().mul_(0.5);
        (*model)["model.layers.1.norm.weight"].detach().fill_(1);
      }
    }
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

// set_data (a module's to(), a user's cast) gives a parameter other storage under the same
// identity.
OFFLOAD_TEST(Parameters, StorageExchangedByTheUserBetweenSteps) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    for (int step = 0; step < 4; ++step) {
      twins.step();
      for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
        for (auto& item : model->parameters) {
          item.value().set_data(item.value().detach().clone());
        }
      }
    }
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
