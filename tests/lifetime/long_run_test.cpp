// Thousands of steps in which other parameters get gradients each time, in constant memory.
#include <malloc.h>

#include <gtest/gtest.h>

#include "memory/device_memory.h"
#include "support/twins.h"
#include "transfer/counters.h"

namespace optim_offload::testing {
namespace {

/// What must not grow.
struct Held {
  size_t heap;  ///< Bytes of the process's own allocator in use.
  int64_t pinned;
  int64_t state;
  int64_t allocated;  ///< On the device.
  int64_t reserved;
  int64_t streams;
  int64_t events;
};

Held held(const Twins& twins, const TestDevice& device) {
  const auto stats = twins.wrapped->stats();
  const auto memory = device_memory(device.device());
  const struct mallinfo2 heap = mallinfo2();
  return {.heap = heap.uordblks + heap.hblkhd,
          .pinned = stats.pinned_bytes + stats.pageable_bytes,
          .state = stats.state_bytes,
          .allocated = memory.allocated,
          .reserved = memory.reserved,
          .streams = transfer::counters().streams.load(),
          .events = transfer::counters().events.load()};
}

void run_long(const TestDevice& device, Mode mode, int steps) {
  SCOPED_TRACE(to_string(mode));
  const std::vector<ParamSpec> specs = {{.name = "embed.weight", .shape = {20, 20}},
                                        {.name = "layers.0.weight", .shape = {12, 12}},
                                        {.name = "layers.0.bias", .shape = {12}},
                                        {.name = "layers.1.weight", .shape = {12, 12}},
                                        {.name = "layers.1.bias", .shape = {12}}};
  Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1024, 2));
  // Every one of the sets comes again and again, none of them twice in a row.
  constexpr int kSets = 31;
  int round = 0;
  const auto changing = [&round](size_t i, const std::string&) {
    return ((round * 7 % kSets + 1) >> i & 1) != 0;
  };
  const auto go = [&](int count) {
    for (int step = 0; step < count; ++step, ++round) twins.step(changing);
  };
  // Both times after whole rounds of the sets, as memory for gradients belongs to the set.
  const int early = steps / 10 / kSets * kSets;
  go(early);
  ASSERT_TRUE(twins.same());
  const Held before = held(twins, device);
  go((steps - early) / kSets * kSets);
  ASSERT_TRUE(twins.same());
  const Held after = held(twins, device);
  // The allocator's own caches settle late; what one step would leave behind, even 16 bytes, is
  // more than this.
  EXPECT_LT(after.heap, before.heap + 100'000 + static_cast<size_t>(steps));
  EXPECT_EQ(after.pinned, before.pinned);
  EXPECT_EQ(after.state, before.state);
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
}

TEST(LongRun, TenThousandStepsOfChangingGradients_Simulated) {
  const TestDevice device(DeviceKind::Simulated, std::chrono::microseconds(0));
  run_long(device, Mode::Streamed, 10'000);
}

TEST(LongRun, OtherModes_Simulated) {
  const TestDevice device(DeviceKind::Simulated, std::chrono::microseconds(0));
  for (const auto mode : {Mode::AllAtOnce, Mode::Sequential}) run_long(device, mode, 2'000);
}

TEST(LongRun, TwoThousandStepsOfChangingGradients_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  for (const auto mode : kModes) run_long(TestDevice(DeviceKind::Cuda), mode, 2'000);
}

}  // namespace
}  // namespace optim_offload::testing
