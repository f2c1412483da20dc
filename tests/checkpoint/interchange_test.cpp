// Archives of the plain and the wrapped optimizer are the same thing, for every mode.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/serialize/archive.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(Checkpoint, SavedStateEqualsThePlainOptimizers) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024), even_and_odd);
      ASSERT_TRUE(same_snapshot(saved_snapshot(*twins.plain), saved_snapshot(*twins.wrapped)));
      twins.steps(2, [](size_t i, const std::string&) { return i != 3; });
      ASSERT_TRUE(same_snapshot(saved_snapshot(*twins.plain), saved_snapshot(*twins.wrapped)));
    }
  }
}

OFFLOAD_TEST(Checkpoint, FromPlainToWrapped) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024), even_and_odd);
      torch::optim::StepLR plain_schedule(*twins.plain, 1, 0.5);
      torch::optim::StepLR schedule(*twins.wrapped, 1, 0.5);
      for (int i = 0; i < 3; ++i) {
        twins.step();
        plain_schedule.step();
        schedule.step();
      }
      // The lr that the scheduler set must come out of the archive, not the recipe's.
      twins.rewrap_empty(offload_options(mode, 2048));
      load_saved(*twins.wrapped, saved(*twins.plain));
      ASSERT_TRUE(twins.same());
      twins.steps(3);
      ASSERT_TRUE(twins.same());
    }
  }
}

OFFLOAD_TEST(Checkpoint, FromWrappedToPlain) {
  for (const auto& recipe : recipes()) {
    for (const auto mode : kModes) {
      SCOPED_TRACE(recipe.name + " " + to_string(mode));
      Twins twins(device, small_decoder(2), recipe, offload_options(mode, 1024), even_and_odd);
      torch::optim::StepLR schedule(*twins.wrapped, 1, 0.5);
      for (int i = 0; i < 3; ++i) {
        twins.step();
        schedule.step();
      }
      twins.restart_plain_from_wrapped();
      ASSERT_TRUE(twins.same());
      twins.steps(3);
      ASSERT_TRUE(twins.same());
    }
  }
}

OFFLOAD_TEST(Checkpoint, BetweenModes) {
  for (const auto* name : {"Adam", "ElementwiseBlend", "NormBlend"}) {
    for (const auto from : kModes) {
      for (const auto to : kModes) {
        SCOPED_TRACE(std::string(name) + " " + to_string(from) + " to " + to_string(to));
        Twins twins(device, small_decoder(2), recipe(name), offload_options(from, 1024));
        twins.steps(2);
        twins.resume(offload_options(to, 4096, 2));
        twins.steps(2);
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

// Loading into an optimizer that has state already, which it must forget or overwrite as the plain
// one does.
OFFLOAD_TEST(Checkpoint, BackToAnEarlierOne) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    const auto archive = saved(*twins.plain);
    const auto wrapped_archive = saved(*twins.wrapped);
    twins.steps(3);
    load_saved(*twins.plain, archive);
    load_saved(*twins.wrapped, wrapped_archive);
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

// What was saved stays as it was, however late the copies of the next steps are.
OFFLOAD_TEST(Checkpoint, NextStepsDoNotReachWhatWasSaved) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    std::vector<std::string> archives;
    std::vector<Snapshot> expected;
    for (int step = 0; step < 4; ++step) {
      twins.step();
      archives.push_back(saved(*twins.wrapped));
      expected.push_back(snapshot(*twins.plain));
    }
    for (size_t i = 0; i < archives.size(); ++i) {
      twins.rewrap_empty(offload_options(mode, 1024));
      load_saved(*twins.wrapped, archives[i]);
      ASSERT_TRUE(same_snapshot(expected[i], snapshot(*twins.wrapped))) << "after step " << i;
    }
  }
}

// Every group's own options come out of the archive, not those of the optimizer it is loaded into.
OFFLOAD_TEST(Checkpoint, OptionsOfEachGroup) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024),
                even_and_odd);
    for (auto* optimizer :
         {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
      for (size_t g = 0; g < 2; ++g) {
        auto& options =
            static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[g].options());
        options.weight_decay(0.25 + static_cast<double>(g));
        options.betas({0.5 + 0.125 * static_cast<double>(g), 0.75});
        options.eps(1e-3);
      }
    }
    twins.steps(2);
    twins.resume(offload_options(mode, 1024));
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Checkpoint, BeforeTheFirstStep) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.resume(offload_options(mode, 1024));
    EXPECT_TRUE(twins.wrapped->state().empty());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Checkpoint, LoadedStateRestsOnTheHost) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    const auto archive = saved(*twins.plain);
    twins.rewrap_empty(offload_options(mode, 1024));
    load_saved(*twins.wrapped, archive);
    if (device.copies()) {
      EXPECT_GE(twins.wrapped->stats().state_bytes, state_bytes(*twins.plain));
    }
    for (const auto& entry : twins.wrapped->state()) {
      torch::serialize::OutputArchive written;
      entry.second->serialize(written);
    }
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
