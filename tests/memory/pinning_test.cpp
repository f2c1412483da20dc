// How host memory is locked: few calls, exact sizes, and what happens where the system refuses.
#include <gtest/gtest.h>

#include "fault.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

std::vector<ParamSpec> many_tensors(int count) {
  std::vector<ParamSpec> specs;
  for (int i = 0; i < count; ++i) {
    specs.push_back({.name = "layers." + std::to_string(i) + ".weight", .shape = {70}});
  }
  return specs;
}

/// Counts calls of a kind without letting one fail.
class CallCount {
 public:
  explicit CallCount(FaultSite site) : fault_(site, /*nth=*/1'000'000) {}
  int64_t calls() const { return fault_.calls(); }

 private:
  ScopedFault fault_;
};

OFFLOAD_TEST(Pinning, OneLockForManyTensors) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const CallCount locks(FaultSite::PageLock);
    Twins twins(device, many_tensors(600), recipe("AdamW"), offload_options(mode, 4096));
    twins.step();
    EXPECT_GE(locks.calls(), 1);
    EXPECT_LE(locks.calls(), 2) << "for 1,200 state tensors";
    twins.steps(2);
    EXPECT_LE(locks.calls(), 2) << "later steps lock nothing";
    ASSERT_TRUE(twins.same());
  }
}

// State is just above a power of two, to which nothing may be rounded up.
OFFLOAD_TEST(Pinning, BytesAreExact) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const std::vector<ParamSpec> specs = {{.name = "layers.0.weight", .shape = {1025, 512}},
                                          {.name = "layers.1.weight", .shape = {1025, 512}}};
    Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1 << 20));
    twins.step();
    const auto stats = twins.wrapped->stats();
    constexpr int64_t kState = int64_t{2} * 2 * 1025 * 512 * 4;
    EXPECT_EQ(stats.state_bytes, kState);
    EXPECT_GE(stats.pinned_bytes + stats.pageable_bytes, kState);
    EXPECT_LE(stats.pinned_bytes + stats.pageable_bytes, kState + 64 * 1024);
  }
}

// Refused where it is preferred: the results are the same, and the stats tell.
TEST(Pinning, RefusedGoesOnPageable_Simulated) {
  const TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 2048));
    {
      const ScopedFault fault(FaultSite::PageLock, 1, /*lasting=*/true);
      twins.step();
      EXPECT_TRUE(fault.hit());
    }
    EXPECT_EQ(twins.wrapped->stats().pinned_bytes, 0);
    EXPECT_GE(twins.wrapped->stats().pageable_bytes, state_bytes(*twins.plain));
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

// Refused where it is required: the message speaks of locking, not of a GPU that is full.
TEST(Pinning, RefusedIsNoGpuOutOfMemory_Simulated) {
  const TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(1), recipe("AdamW"),
                offload_options(mode, 2048).pin_memory(PinMemory::Required));
    twins.gradients();
    const ScopedFault fault(FaultSite::PageLock, 1);
    try {
      twins.wrapped->step();
      FAIL() << "memory that was not locked was taken";
    } catch (const c10::OutOfMemoryError& error) {
      FAIL() << "LibTorch's callers would empty the GPU's cache: " << error.what();
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      EXPECT_NE(what.find("could not be page-locked"), std::string::npos) << what;
      EXPECT_NE(what.find("ulimit -l"), std::string::npos) << what;
      EXPECT_EQ(what.find("out of memory"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
