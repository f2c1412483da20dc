// Each allocation of tensor memory fails once: in a step (the base's own and the wrapper's), when
// an optimizer is wrapped, saved, loaded and released. CPU tensors alone can be let fail so.
#include <gtest/gtest.h>

#include "faults/before_or_after.h"
#include "support/blend.h"
#include "support/failing_memory.h"

namespace optim_offload::testing {
namespace {

// All of the first allocations, then a sample.
int64_t next(int64_t nth) { return nth < 40 ? nth + 1 : nth + 29; }

/// Slots are poisoned with NaN when they are given back.
void expect_finite(const Twins& twins) {
  const auto held = snapshot(*twins.wrapped);
  for (const auto& fields : held.state.at(0)) {
    for (const auto& [key, value] : fields) {
      if (value.isTensor()) {
        ASSERT_TRUE(value.toTensor().isfinite().all().item<bool>()) << key;
      }
    }
  }
}

/// `call` fails at allocation after allocation; `check` sees the twins after each failure.
template <typename Make, typename Call, typename Check>
void fail_each(const Make& make, const Call& call, const Check& check) {
  int failed = 0;
  for (int64_t nth = 1;; nth = next(nth)) {
    SCOPED_TRACE(::testing::Message() << "allocation " << nth);
    auto twins = make();
    bool thrown = false;
    bool hit = false;
    {
      const FailingMemory memory(nth);
      try {
        call(*twins);
      } catch (const std::exception& error) {
        thrown = true;
        EXPECT_NE(std::string(error.what()).find("planned fault (tensor memory)"),
                  std::string::npos)
            << error.what();
      }
      hit = memory.hit();
    }
    if (!hit) break;
    failed += thrown;
    ASSERT_NO_FATAL_FAILURE(check(*twins));
  }
  EXPECT_GT(failed, 0);
}

void go_on(Twins& twins) {
  ASSERT_TRUE(twins.same());
  twins.steps(2);
  ASSERT_TRUE(twins.same());
}

class MemoryFaults : public ::testing::Test {
 protected:
  auto make(const Recipe& recipe, Mode mode, int steps) {
    auto twins =
        std::make_unique<Twins>(device_, small_decoder(1), recipe, offload_options(mode, 2048, 2));
    twins->steps(steps);
    return twins;
  }
  TestDevice device_{DeviceKind::Simulated, std::chrono::microseconds(10)};
};

TEST_F(MemoryFaults, Step_Simulated) {
  for (const auto& recipe : {recipe("AdamW"), recipe_of<ReplacingBlend>("ReplacingBlend")}) {
    for (const auto mode : kModes) {
      for (const int steps : {0, 2}) {
        SCOPED_TRACE(recipe.name + " " + to_string(mode));
        std::optional<StepStart> start;
        ASSERT_NO_FATAL_FAILURE(fail_each(
            [&] {
              auto twins = make(recipe, mode, steps);
              start.emplace(*twins);
              twins->gradients();
              return twins;
            },
            [](Twins& twins) { twins.wrapped->step(); },
            [&](Twins& twins) {
              ASSERT_NO_FATAL_FAILURE(start->expect_groups(twins));
              ASSERT_NO_FATAL_FAILURE(expect_finite(twins));
              twins.restart_plain_from_wrapped();
              go_on(twins);
            }));
      }
    }
  }
}

TEST_F(MemoryFaults, Wrap_Simulated) {
  // Adagrad makes its state in its constructor, so that wrapping has to move it.
  for (const auto mode : kModes) {
    for (int64_t nth = 1;; ++nth) {
      auto model = make_model(small_decoder(1), device_.device());
      const auto before = make_model(small_decoder(1), device_.device());
      auto base = make_base(recipe("Adagrad"), {model.tensors()});
      bool hit = false;
      {
        const FailingMemory memory(nth);
        try {
          CPUOffloadOptimizer(std::move(base), model.parameters, offload_options(mode));
          EXPECT_FALSE(memory.hit());
        } catch (const c10::Error& error) {
          EXPECT_NE(std::string(error.what()).find("planned fault"), std::string::npos);
        }
        hit = memory.hit();
      }
      if (!hit) break;
      ASSERT_TRUE(same_parameters(before, model));
    }
  }
}

TEST_F(MemoryFaults, Save_Simulated) {
  for (const auto mode : kModes) {
    fail_each([&] { return make(recipe("AdamW"), mode, 2); },
              [](Twins& twins) { saved(*twins.wrapped); }, go_on);
  }
}

// A load that finds no memory for what it reads changes nothing.
TEST_F(MemoryFaults, Load_Simulated) {
  for (const auto mode : kModes) {
    std::string archive;
    fail_each(
        [&] {
          auto twins = make(recipe("AdamW"), mode, 1);
          archive = saved(*twins->wrapped);
          twins->steps(2);
          return twins;
        },
        [&](Twins& twins) { load_saved(*twins.wrapped, archive); }, go_on);
  }
}

TEST_F(MemoryFaults, Release_Simulated) {
  for (const auto mode : kModes) {
    fail_each([&] { return make(recipe("AdamW"), mode, 2); },
              [](Twins& twins) { twins.wrapped->release(); }, go_on);
  }
}

}  // namespace
}  // namespace optim_offload::testing
