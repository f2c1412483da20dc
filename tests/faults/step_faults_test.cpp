// Each call that a step makes fails once, one after the other: what stands in docs/errors.md about
// a failed step is true of each.
#include <gtest/gtest.h>

#include "fault.h"
#include "faults/before_or_after.h"
#include "support/blend.h"

namespace optim_offload::testing {
namespace {

constexpr FaultSite kStepSites[] = {
    FaultSite::HostMemory,  FaultSite::PageLock, FaultSite::SlotMemory,
    FaultSite::MakeEvent,   FaultSite::CopyUp,   FaultSite::CopyDown,
    FaultSite::RecordEvent, FaultSite::LaneWait, FaultSite::HostWait};

/// The words by which a message names the call that failed.
std::string words(FaultSite site) {
  switch (site) {
    case FaultSite::HostMemory:
      return "no host memory for optimizer state";
    case FaultSite::PageLock:
      return "host memory could not be page-locked";
    case FaultSite::SlotMemory:
      return "out of memory";
    default:
      return std::string("planned fault (") + to_string(site) + ")";
  }
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Which calls are seen to be made, so that a loop over none does not pass for a test.
bool is_made(FaultSite site, Mode mode, int earlier_steps, bool has_state) {
  switch (site) {
    case FaultSite::HostMemory:
    case FaultSite::PageLock:
      return !has_state;
    case FaultSite::SlotMemory:
    case FaultSite::CopyUp:
      return has_state;
    case FaultSite::MakeEvent:
      return mode == Mode::Streamed && earlier_steps == 0;
    case FaultSite::RecordEvent:
    case FaultSite::LaneWait:
      return mode == Mode::Streamed;
    default:
      return true;
  }
}

/// Lets call after call of `site` fail in a step until it makes no more; gives how many failed.
void fail_each_call(const TestDevice& device, const Recipe& recipe, Mode mode, FaultSite site,
                    int earlier_steps, int& failed) {
  for (int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(::testing::Message()
                 << recipe.name << ", " << to_string(mode) << ", after " << earlier_steps
                 << " steps, " << to_string(site) << " number " << nth);
    Twins twins(device, small_decoder(1), recipe,
                offload_options(mode, 2048, 2).pin_memory(PinMemory::Required));
    twins.steps(earlier_steps);
    const StepStart start(twins);
    twins.gradients();
    twins.plain->step();

    std::string what;
    bool hit = false;
    {
      const ScopedFault fault(site, nth);
      try {
        twins.wrapped->step();
      } catch (const c10::Error& error) {
        what = error.what_without_backtrace();
      }
      hit = fault.hit();
    }
    if (!hit) {
      ASSERT_EQ(what, "");
      ASSERT_TRUE(twins.same());
      return;
    }
    ++failed;
    ASSERT_EQ(count(what, words(site)), 1u) << what;
    ASSERT_EQ(count(what, "[optim_offload] step() failed"), 1u) << what;
    ASSERT_NO_FATAL_FAILURE(start.expect_kept(twins, what, recipe.element_wise));

    // From here on it goes as the plain optimizer would from the same point.
    twins.restart_plain_from_wrapped();
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

void fail_each_call(const TestDevice& device, const Recipe& recipe) {
  const FaultyLinks links;
  for (const auto mode : kModes) {
    for (const auto site : kStepSites) {
      for (const int earlier_steps : {0, 2}) {
        int failed = 0;
        ASSERT_NO_FATAL_FAILURE(fail_each_call(device, recipe, mode, site, earlier_steps, failed));
        const bool has_state = earlier_steps > 0 || recipe.name == "Adagrad";
        if (is_made(site, mode, earlier_steps, has_state)) {
          EXPECT_GT(failed, 0) << to_string(mode) << " makes no " << to_string(site);
        }
      }
    }
  }
}

void simulated(const Recipe& recipe, int devices = 1) {
  const TestDevice device(DeviceKind::Simulated, std::chrono::microseconds(10), devices);
  fail_each_call(device, recipe);
}

void cuda(const Recipe& recipe) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  fail_each_call(TestDevice(DeviceKind::Cuda), recipe);
}

TEST(StepFaults, WithTilesAndFixedState_Simulated) { simulated(recipe("AdamW")); }
TEST(StepFaults, WithTilesAndFixedState_CUDA) { cuda(recipe("AdamW")); }

TEST(StepFaults, OfWholeParameters_Simulated) { simulated(recipe("NormBlend")); }
TEST(StepFaults, OfWholeParameters_CUDA) { cuda(recipe("NormBlend")); }

TEST(StepFaults, WithStateThatIsReplaced_Simulated) {
  simulated(recipe_of<ReplacingBlend>("ReplacingBlend"));
}
TEST(StepFaults, WithStateThatIsReplaced_CUDA) {
  cuda(recipe_of<ReplacingBlend>("ReplacingBlend"));
}

TEST(StepFaults, OnSeveralDevices_Simulated) { simulated(recipe("AdamW"), 3); }

TEST(StepFaults, WithStateFromTheConstructor_Simulated) { simulated(recipe("Adagrad")); }

}  // namespace
}  // namespace optim_offload::testing
