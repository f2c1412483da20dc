// Gradients that are missing, late, sparse or reset.
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

const char* const kOptimizers[] = {"SGD", "AdamW", "ElementwiseBlend", "NormBlend"};

OFFLOAD_TEST(Gradients, FrozenParametersStayAndOwnNoState) {
  auto specs = small_decoder(3);
  for (auto& spec : specs) {
    spec.requires_grad = spec.name.find("layers.1.") == std::string::npos &&
                         spec.name.find("up_proj") == std::string::npos;
  }
  for (const auto* name : kOptimizers) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(std::string(name) + " " + to_string(mode));
      Twins twins(device, specs, recipe(name), offload_options(mode), even_and_odd);
      twins.steps(3);
      ASSERT_TRUE(twins.same());
      EXPECT_EQ(twins.wrapped->state().size(), twins.plain->state().size());
    }
  }
}

OFFLOAD_TEST(Gradients, AbsentNowAndThen) {
  for (const auto* name : kOptimizers) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(std::string(name) + " " + to_string(mode));
      Twins twins(device, small_decoder(3), recipe(name), offload_options(mode), even_and_odd);
      for (size_t step = 0; step < 8; ++step) {
        // Some parameters first appear at step 3, each misses some steps, and step 5 has none.
        twins.step([&](size_t i, const std::string&) {
          return step != 5 && (i % 4 != 1 || step >= 3) && (i + step) % 3 != 0;
        });
        ASSERT_TRUE(twins.same()) << "at step " << step;
      }
    }
  }
}

OFFLOAD_TEST(Gradients, AWholeChunkAppearsLate) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe("Adam"), offload_options(mode));
    for (int step = 0; step < 5; ++step) {
      twins.step([&](size_t, const std::string& name) {
        return step >= 2 || name.find("layers.1.") == std::string::npos;
      });
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(Gradients, NoneAtAll) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode));
    twins.step([](size_t, const std::string&) { return false; });
    ASSERT_TRUE(twins.same());
    EXPECT_TRUE(twins.wrapped->state().empty());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Gradients, ZeroGradThroughTheWrapper) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode));
    twins.steps(2);
    torch::optim::Optimizer& optimizer = *twins.wrapped;
    optimizer.zero_grad(/*set_to_none=*/false);
    for (const auto& tensor : twins.wrapped_model.tensors()) {
      ASSERT_TRUE(tensor.grad().defined());
      EXPECT_EQ(tensor.grad().abs().sum().item<float>(), 0.0f);
    }
    optimizer.zero_grad();
    for (const auto& tensor : twins.wrapped_model.tensors()) {
      EXPECT_FALSE(tensor.grad().defined());
    }
    twins.plain->zero_grad();
    twins.plain->step();
    optimizer.step();
    EXPECT_TRUE(twins.same());
  }
}

void set_sparse_gradient(torch::Tensor& parameter, uint64_t seed) {
  const int64_t rows = parameter.size(0);
  auto indices =
      torch::tensor({int64_t(seed % rows), int64_t((seed * 5 + 3) % rows), rows - 1}, torch::kInt64)
          .view({1, 3})
          .to(parameter.device());
  auto values =
      random_values({3, parameter.size(1)}, seed, parameter.scalar_type(), parameter.device());
  parameter.mutable_grad() =
      torch::sparse_coo_tensor(indices, values, parameter.sizes()).coalesce();
}

void check_sparse(const TestDevice& device, const Recipe& recipe, Mode mode) {
  std::vector<ParamSpec> specs = {{.name = "embed.weight", .shape = {41, 19}},
                                  {.name = "layers.0.weight", .shape = {19, 7}}};
  Twins twins(device, specs, recipe, offload_options(mode, 1024));
  for (uint64_t step = 0; step < 5; ++step) {
    twins.gradients();
    set_sparse_gradient(twins.plain_model["embed.weight"], step * 11);
    set_sparse_gradient(twins.wrapped_model["embed.weight"], step * 11);
    twins.plain->step();
    twins.wrapped->step();
    ASSERT_TRUE(twins.same()) << "at step " << step;
  }
}

Recipe sgd(double momentum) {
  return {.name = "SGD", .make = [momentum](const Groups& groups) {
            std::vector<torch::optim::OptimizerParamGroup> list(groups.begin(), groups.end());
            return std::make_unique<torch::optim::SGD>(
                list, torch::optim::SGDOptions(0.1).momentum(momentum));
          }};
}

OFFLOAD_TEST(Gradients, SparseWithAdagrad) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    check_sparse(device, recipe("Adagrad"), mode);
  }
}

OFFLOAD_TEST(Gradients, SparseWithSgd) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    check_sparse(device, sgd(0), mode);
  }
}

// With momentum LibTorch keeps a sparse buffer as state.
OFFLOAD_TEST(Gradients, SparseWithSgdMomentum) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    check_sparse(device, sgd(0.9), mode);
  }
}

// Several backward passes for one step; steps between them would lose some.
OFFLOAD_TEST(Gradients, AddUpOverMicroBatches) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    for (int step = 0; step < 3; ++step) {
      int side = 0;
      for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
        auto& optimizer =
            side++ == 0 ? *twins.plain : static_cast<torch::optim::Optimizer&>(*twins.wrapped);
        optimizer.zero_grad();
        for (int part = 1; part <= 4; ++part) {
          for (const auto& tensor : model->tensors()) {
            ((tensor * part).sin().sum() / 4).backward();
          }
        }
        optimizer.step();
      }
      ASSERT_TRUE(twins.same());
    }
  }
}

OFFLOAD_TEST(Gradients, NotANumberTravelsAsItIs) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    twins.gradients();
    for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
      auto gradient = (*model)["model.embed_tokens.weight"].grad();
      gradient[3][5] = std::numeric_limits<float>::quiet_NaN();
      gradient[36][18] = std::numeric_limits<float>::infinity();
    }
    twins.plain->step();
    twins.wrapped->step();
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
