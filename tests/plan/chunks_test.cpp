// How names become chunks, and chunks pieces and tiles, as the stats tell it.
#include <gtest/gtest.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

int64_t chunks_of(const std::vector<std::string>& names, const OffloadOptions& options) {
  std::vector<ParamSpec> specs;
  for (const auto& name : names) specs.push_back({.name = name, .shape = {3, 5}});
  auto model = make_model(specs, torch::kCPU);
  CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                              options);
  set_gradients(model, 1);
  wrapped.step();
  return wrapped.stats().chunks;
}

TEST(Chunks, OneALayerAndTheRest) {
  const auto options = offload_options(Mode::Sequential);
  EXPECT_EQ(chunks_of({"model.layers.0.a.weight", "model.layers.0.b.weight",
                       "model.layers.1.a.weight", "model.norm.weight", "embed.weight"},
                      options),
            3);
  EXPECT_EQ(chunks_of({"model.layers.0.a", "model.layers.10.a", "model.layers.1.a"}, options), 3);
}

TEST(Chunks, NoLayersAtAll) {
  const auto options = offload_options(Mode::Sequential);
  EXPECT_EQ(chunks_of({"a", "b", "layers.x.weight", "layers.3"}, options), 1);
}

TEST(Chunks, StacksWithTheSameNumbers) {
  const auto options = offload_options(Mode::Sequential);
  EXPECT_EQ(chunks_of({"encoder.layers.0.a", "encoder.layers.1.a", "decoder.layers.0.a",
                       "decoder.layers.1.a", "decoder.layers.1.b"},
                      options),
            4);
}

TEST(Chunks, AnotherPattern) {
  const auto options = offload_options(Mode::Sequential).layer_pattern(R"(h\.(\d+)\.)");
  EXPECT_EQ(chunks_of({"transformer.h.0.attn", "transformer.h.1.attn", "transformer.h.1.mlp",
                       "layers.0.x", "layers.1.x"},
                      options),
            3);
}

TEST(Chunks, BadOptionsAreErrors) {
  auto model = make_model(small_decoder(1), torch::kCPU);
  const auto wrap = [&](const OffloadOptions& options) {
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                options);
  };
  EXPECT_NO_THROW(wrap(OffloadOptions()));
  EXPECT_THROW(wrap(OffloadOptions().stream(true)), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Streamed, 1023)), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Streamed, 0)), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Streamed, -1)), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Streamed, 1024, 1)), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Sequential).layer_pattern("layers\\.(\\d+")), c10::Error);
  EXPECT_THROW(wrap(offload_options(Mode::Sequential).layer_pattern("layers")), c10::Error);
  // The standard library would run out of stack.
  const std::string long_pattern = std::string(90000, 'a') + "(b)";
  EXPECT_THROW(wrap(offload_options(Mode::Sequential).layer_pattern(long_pattern)), c10::Error);
}

TEST(Chunks, ErrorsSayWhatToDo) {
  auto model = make_model(small_decoder(1), torch::kCPU);
  try {
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                OffloadOptions().stream(true));
    FAIL();
  } catch (const c10::Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("[optim_offload]"), std::string::npos) << what;
    EXPECT_NE(what.find("stream"), std::string::npos) << what;
    EXPECT_NE(what.find("chunked"), std::string::npos) << what;
  }
}

OFFLOAD_TEST(Chunks, ParameterTwiceInTheGroupsIsAnError) {
  for (const auto mode : kModes) {
    auto model = make_model(small_decoder(1), device.device());
    auto twice = model.tensors();
    twice.push_back(twice[1]);
    EXPECT_THROW(CPUOffloadOptimizer(make_base(recipe("AdamW"), {twice}), model.parameters,
                                     offload_options(mode)),
                 c10::Error);
    EXPECT_THROW(CPUOffloadOptimizer(make_base(recipe("AdamW"), {model.tensors(), {twice[1]}}),
                                     model.parameters, offload_options(mode)),
                 c10::Error);
  }
}

OFFLOAD_TEST(Chunks, WithoutABaseIsAnError) {
  auto model = make_model(small_decoder(1), device.device());
  EXPECT_THROW(CPUOffloadOptimizer(nullptr, model.parameters, OffloadOptions()), c10::Error);
}

// Parameters of one layer lie in several groups, and one group spans the layers.
OFFLOAD_TEST(Chunks, GroupsAcrossChunks) {
  const Grouping by_kind = [](Model& model) {
    Groups groups(4);
    for (auto& item : model.parameters) {
      const auto& name = item.key();
      const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      groups[has("norm") ? 0 : has("q_proj") ? 1 : has("up_proj") ? 2 : 3].push_back(item.value());
    }
    groups.emplace_back();  // A group without parameters.
    return groups;
  };
  for (const auto* name : {"SGD", "Adam", "NormBlend"}) {
    for (const auto mode : kModes) {
      for (const int64_t piece_bytes : {1024, 1 << 20}) {
        SCOPED_TRACE(std::string(name) + " " + to_string(mode));
        Twins twins(device, small_decoder(3), recipe(name), offload_options(mode, piece_bytes),
                    by_kind);
        twins.steps(4);
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

// The order of the names differs from the order in the groups.
OFFLOAD_TEST(Chunks, GroupsInAnotherOrderThanNames) {
  const Grouping reversed = [](Model& model) {
    auto tensors = model.tensors();
    return Groups{{tensors.rbegin(), tensors.rend()}};
  };
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(3), recipe("RMSprop"), offload_options(mode), reversed);
    twins.steps(3);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Tiles, OnlyWhereElementwise) {
  for (const auto mode : kChunkedModes) {
    for (const auto& recipe : recipes()) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(1), recipe, offload_options(mode, 1024));
      twins.steps(2);
      if (!recipe.element_wise) {
        EXPECT_EQ(twins.wrapped->stats().tiles, 0);
      } else if (device.copies()) {
        EXPECT_GT(twins.wrapped->stats().tiles, 1);
      }
      ASSERT_TRUE(twins.same());
    }
  }
}

// Sizes around the tile's own: one element less, equal, one more, and primes.
OFFLOAD_TEST(Tiles, KeepTheTypeOfState) {
  for (const auto dtype : {torch::kBFloat16, torch::kFloat16, torch::kFloat64}) {
    for (const auto mode : kChunkedModes) {
      for (const int64_t piece_bytes : {1024, 1 << 20}) {
        SCOPED_TRACE(::testing::Message() << dtype << " " << to_string(mode) << " " << piece_bytes);
        Twins twins(device, small_decoder(1, dtype), recipe("AdamW"),
                    offload_options(mode, piece_bytes));
        twins.steps(3);
        if (device.copies()) {
          EXPECT_EQ(twins.wrapped->stats().tiles > 0, piece_bytes == 1024);
        }
        ASSERT_TRUE(twins.same()) << "types are compared too";
      }
    }
  }
}

OFFLOAD_TEST(Tiles, SizesAroundAPiece) {
  std::vector<ParamSpec> specs;
  for (const int64_t size :
       {63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513, 1021, 1024, 1031}) {
    specs.push_back({.name = "p" + std::to_string(size), .shape = {size}});
  }
  for (const auto* name : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "ElementwiseBlend"}) {
    for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
      for (auto& spec : specs) spec.dtype = dtype;
      SCOPED_TRACE(::testing::Message() << name << " " << dtype);
      Twins twins(device, specs, recipe(name), offload_options(Mode::Streamed, 1024));
      twins.steps(3);
      ASSERT_TRUE(twins.same());
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
