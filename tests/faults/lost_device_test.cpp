// From some call on every call of the link fails, as on a device that is lost. State cannot be
// trusted then; the message says so, and nothing else is damaged.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "fault.h"
#include "faults/before_or_after.h"

namespace optim_offload::testing {
namespace {

constexpr FaultSite kLinkSites[] = {FaultSite::CopyUp, FaultSite::CopyDown, FaultSite::RecordEvent,
                                    FaultSite::LaneWait, FaultSite::HostWait};

void copy_weights(const Model& from, Model& to) {
  const torch::NoGradGuard no_grad;
  for (auto& item : to.parameters) item.value().copy_(from.parameters[item.key()]);
}

/// Gives whether the call came.
void lose_at(const TestDevice& device, Mode mode, FaultSite site, int64_t nth, bool& hit) {
  Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 2048, 2));
  twins.steps(2);
  const auto checkpoint = saved(*twins.plain);
  const StepStart start(twins);
  twins.gradients();
  {
    const ScopedFault fault(site, nth, /*lasting=*/true);
    std::string what;
    try {
      twins.wrapped->step();
    } catch (const c10::Error& error) {
      what = error.what_without_backtrace();
    }
    hit = fault.hit();
    if (!hit) return;
    ASSERT_NE(what.find("planned fault"), std::string::npos) << what;
    if (what.find("nothing has changed") == std::string::npos) {
      ASSERT_NE(what.find("resume from a checkpoint"), std::string::npos) << what;
    }
    EXPECT_EQ(what.find("state are in place"), std::string::npos) << what;
    ASSERT_NO_FATAL_FAILURE(start.expect_groups(twins));
    for (const auto& entry : twins.wrapped->state()) {
      auto& state = static_cast<torch::optim::AdamWParamState&>(*entry.second);
      ASSERT_NE(state.exp_avg().const_data_ptr(), nullptr) << "still in a slot";
      ASSERT_TRUE(state.exp_avg().is_cpu());
    }
    saved(*twins.wrapped);  // Does not need the device.
  }
  // Back to the checkpoint, weights and optimizer.
  copy_weights(twins.plain_model, twins.wrapped_model);
  load_saved(*twins.wrapped, checkpoint);
  ASSERT_TRUE(twins.same());
  twins.steps(2);
  ASSERT_TRUE(twins.same());
}

TEST(LostDevice, GoesBackToACheckpoint_Simulated) {
  const TestDevice device(DeviceKind::Simulated, std::chrono::microseconds(10));
  const FaultyLinks links;
  for (const auto mode : kModes) {
    for (const auto site : kLinkSites) {
      for (int64_t nth = 1;; ++nth) {
        SCOPED_TRACE(::testing::Message()
                     << to_string(mode) << ", " << to_string(site) << " number " << nth);
        bool hit = false;
        ASSERT_NO_FATAL_FAILURE(lose_at(device, mode, site, nth, hit));
        if (!hit) break;
      }
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
