// Options that the base itself changes during a step.
#include <gtest/gtest.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(GroupOptions, CountersAdvanceOnceAStep) {
  for (const auto mode : kModes) {
    for (const int64_t piece_bytes : {1024, 4096, 1 << 20}) {
      SCOPED_TRACE(to_string(mode));
      Twins twins(device, small_decoder(3), recipe_of<GroupCounterBlend>("GroupCounterBlend"),
                  offload_options(mode, piece_bytes), even_and_odd);
      twins.steps(5);
      ASSERT_TRUE(twins.same());
      for (auto& group : twins.wrapped->param_groups()) {
        EXPECT_EQ(static_cast<BlendOptions&>(group.options()).group_steps(), 5);
      }
    }
  }
}

/// Says of its options what is not true.
class WronglyFixedBlend : public GroupCounterBlend {
 public:
  using GroupCounterBlend::GroupCounterBlend;
};

// All pieces then get the groups' own options, as documented: a counter there counts pieces.
OFFLOAD_TEST(GroupOptions, ThoseSaidToBeFixedAreNotCopied) {
  set_optimizer_traits<WronglyFixedBlend>({.fixed_options = true});
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe_of<WronglyFixedBlend>("WronglyFixedBlend"),
                offload_options(mode, 1024));
    twins.gradients();
    twins.wrapped->step();
    auto& options = static_cast<BlendOptions&>(twins.wrapped->param_groups()[0].options());
    EXPECT_EQ(options.group_steps(), twins.wrapped->stats().pieces);
    EXPECT_GT(options.group_steps(), 1);
  }
}

// A step without any gradient counts as well, and a group whose parameters all lack one.
OFFLOAD_TEST(GroupOptions, CountersAdvanceWithoutGradients) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe_of<GroupCounterBlend>("GroupCounterBlend"),
                offload_options(mode), even_and_odd);
    twins.step([](size_t, const std::string&) { return false; });
    ASSERT_TRUE(twins.same()) << "no gradients";
    twins.step([](size_t i, const std::string&) { return i % 2 == 0; });
    ASSERT_TRUE(twins.same()) << "gradients in one group";
    twins.step();
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(GroupOptions, CountersSurviveACheckpoint) {
  const auto counter = recipe_of<GroupCounterBlend>("GroupCounterBlend");
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), counter, offload_options(mode), even_and_odd);
    twins.steps(3);
    twins.resume(offload_options(mode, 1024));
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(GroupOptions, DisagreementOfPiecesNamesTheGroup) {
  for (const auto mode : kChunkedModes) {
    auto specs = small_decoder(2);
    specs.pop_back();
    specs.pop_back();  // Pieces with different numbers of parameters.
    Twins twins(device, specs, recipe_of<ParameterCountingBlend>("ParameterCountingBlend"),
                offload_options(mode, 8192));
    twins.gradients();
    const auto* options = &twins.wrapped->param_groups()[0].options();
    try {
      twins.wrapped->step();
      FAIL() << "pieces that disagree were accepted in mode " << to_string(mode);
    } catch (const c10::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("[optim_offload]"), std::string::npos) << what;
      EXPECT_NE(what.find("group 0"), std::string::npos) << what;
    }
    EXPECT_EQ(&twins.wrapped->param_groups()[0].options(), options);
    EXPECT_EQ(twins.wrapped->param_groups()[0].params().size(), specs.size());
  }
}

// Several groups without gradients or parameters in some pieces must not look like disagreement.
OFFLOAD_TEST(GroupOptions, GroupsThatMissPieces) {
  const Grouping by_layer = [](Model& model) {
    Groups groups(3);
    for (auto& item : model.parameters) {
      const bool first = item.key().find("layers.0.") != std::string::npos;
      const bool second = item.key().find("layers.1.") != std::string::npos;
      groups[first ? 0 : second ? 1 : 2].push_back(item.value());
    }
    return groups;
  };
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe_of<GroupCounterBlend>("GroupCounterBlend"),
                offload_options(mode, 1024), by_layer);
    twins.steps(3);
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
