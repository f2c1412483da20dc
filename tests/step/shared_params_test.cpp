// Parameters over the same memory: the results depend on which is stepped first.
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// A misc parameter of the first group's and one of a layer, over the same memory.
OFFLOAD_TEST(SharedParams, TiedBySetData) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    for (const bool layer_first : {true, false}) {
      SCOPED_TRACE(layer_first);
      std::vector<ParamSpec> specs{{"embed.weight", {12, 8}}, {"layers.0.weight", {12, 8}}};
      if (layer_first) std::swap(specs[0], specs[1]);
      Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1024));
      for (Model* model : {&twins.plain_model, &twins.wrapped_model}) {
        (*model)["layers.0.weight"].set_data((*model)["embed.weight"]);
      }
      if (layer_first || mode == Mode::AllAtOnce) {
        twins.steps(3);
        EXPECT_TRUE(twins.same());
      } else {
        EXPECT_HAS(error_text([&] { twins.steps(3); }),
                   "two parameters share memory, and the second would be stepped before the first "
                   "(embed.weight and layers.0.weight)");
      }
    }
  }
}

// The base comes to a piece's parameters group by group.
OFFLOAD_TEST(SharedParams, InTheGroupsOfOnePiece) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const std::vector<ParamSpec> specs{{"embed.weight", {6, 4}}, {"layers.0.weight", {6, 4}}};
    const auto one_each = [](Model& model) {
      return Groups{{model["embed.weight"]}, {model["layers.0.weight"]}};
    };
    Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 4096), one_each);
    for (Model* model : {&twins.plain_model, &twins.wrapped_model}) {
      (*model)["layers.0.weight"].set_data((*model)["embed.weight"]);
    }
    twins.steps(3);
    EXPECT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(SharedParams, WithoutAGradient) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const std::vector<ParamSpec> specs{{"embed.weight", {12, 8}}, {"layers.0.weight", {12, 8}}};
    Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1024));
    for (Model* model : {&twins.plain_model, &twins.wrapped_model}) {
      (*model)["layers.0.weight"].set_data((*model)["embed.weight"]);
    }
    twins.steps(3, [](size_t position, const std::string&) { return position == 1; });
    EXPECT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
