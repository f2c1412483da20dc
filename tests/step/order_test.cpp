// What a step may create, hold and wait for.
#include <gtest/gtest.h>

#include "support/twins.h"
#include "transfer/counters.h"

namespace optim_offload::testing {
namespace {

constexpr int64_t kPiece = 1024;

OFFLOAD_TEST(Order, FirstAndLaterStepsHoldAtMostTheSlots) {
  for (const auto* name : {"Adam", "Adagrad", "ElementwiseBlend"}) {
    for (const auto mode : kChunkedModes) {
      for (const int64_t slots : {2, 3, 4}) {
        SCOPED_TRACE(::testing::Message() << name << " " << to_string(mode) << ", " << slots);
        Twins twins(device, small_decoder(4), recipe(name), offload_options(mode, kPiece, slots));
        for (int step = 0; step < 3; ++step) {
          twins.step();
          const auto stats = twins.wrapped->stats();
          EXPECT_LE(stats.peak_slot_bytes, slots * kPiece) << "at step " << step;
          if (device.copies()) {
            EXPECT_GT(stats.peak_slot_bytes, 0);
            EXPECT_LE(stats.largest_piece_bytes, kPiece);
            EXPECT_EQ(stats.oversize_piece, "");
          }
        }
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

// What cannot be cut is stepped whole, and the stats say so.
OFFLOAD_TEST(Order, OversizePieceIsNamed) {
  for (const auto mode : kChunkedModes) {
    Twins twins(device, small_decoder(2), recipe("NormBlend"), offload_options(mode, kPiece));
    twins.steps(2);
    const auto stats = twins.wrapped->stats();
    if (device.copies()) {
      EXPECT_GT(stats.largest_piece_bytes, kPiece);
      EXPECT_EQ(stats.oversize_piece, "model.embed_tokens.weight");
    }
    EXPECT_EQ(stats.tiles, 0);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Order, SequentialCreatesNoStreamAndNoEvent) {
  const auto streams = transfer::counters().streams.load();
  const auto events = transfer::counters().events.load();
  for (const auto mode : {Mode::AllAtOnce, Mode::Sequential}) {
    Twins twins(device, small_decoder(3), recipe("AdamW"), offload_options(mode, kPiece));
    twins.steps(3);
    const auto archive = saved(*twins.wrapped);
    load_saved(*twins.wrapped, archive);
    twins.step();
    ASSERT_TRUE(twins.same());
    if (mode == Mode::Sequential) {
      twins.wrapped.reset();
      EXPECT_EQ(transfer::counters().streams.load(), streams);
      EXPECT_EQ(transfer::counters().events.load(), events);
    }
  }
}

OFFLOAD_TEST(Order, StreamsAndEventsAreMadeOnce) {
  Twins twins(device, small_decoder(3), recipe("AdamW"), offload_options(Mode::Streamed, kPiece));
  twins.steps(3);
  const auto streams = transfer::counters().streams.load();
  const auto events = transfer::counters().events.load();
  twins.steps(5);
  EXPECT_EQ(transfer::counters().streams.load(), streams);
  EXPECT_EQ(transfer::counters().events.load(), events);
}

OFFLOAD_TEST(Order, HostWaitsAtMostOnceAStep) {
  Twins twins(device, small_decoder(4), recipe("AdamW"), offload_options(Mode::Streamed, kPiece));
  for (int step = 0; step < 4; ++step) {
    twins.gradients();
    const auto before = transfer::counters().host_waits.load();
    twins.wrapped->step();
    EXPECT_LE(transfer::counters().host_waits.load() - before, 1) << "at step " << step;
    twins.plain->step();
  }
  EXPECT_GT(twins.wrapped->stats().pieces, 8) << "too few pieces for this test to mean anything";
  ASSERT_TRUE(twins.same());
}

// A piece is one copy up and one down, whatever number of tensors it holds; only a large piece may
// travel as several.
OFFLOAD_TEST(Order, OneCopyAPieceAndDirection) {
  for (const auto mode : kChunkedModes) {
    Twins twins(device, small_decoder(4), recipe("AdamW"), offload_options(mode, 8192));
    twins.steps(2);
    twins.gradients();
    const auto before = transfer::counters().copies.load();
    twins.wrapped->step();
    const auto copies = transfer::counters().copies.load() - before;
    if (device.copies()) {
      EXPECT_EQ(copies, 2 * twins.wrapped->stats().pieces) << to_string(mode);
    } else {
      EXPECT_EQ(copies, 0) << to_string(mode);
    }
  }
}

// The caller may read state and archive as soon as step() returns, however late the copies are.
TEST(Order, FinishedOnReturn_Simulated) {
  TestDevice device(DeviceKind::Simulated, std::chrono::milliseconds(2));
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("Adam"), offload_options(mode, 2048));
    for (int step = 0; step < 3; ++step) {
      twins.step();
      ASSERT_TRUE(same_snapshot(saved_snapshot(*twins.plain), saved_snapshot(*twins.wrapped)));
      ASSERT_TRUE(twins.same());
    }
  }
}

// The compute lane's work may go on after step(), until the caller asks.
TEST(Order, SynchronizeWaitsForAllLanes_Simulated) {
  TestDevice device(DeviceKind::Simulated);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("Adam"), offload_options(mode, kPiece));
    twins.steps(2);
    const auto order = transfer::simulated_device_order();
    EXPECT_GT(order->bytes_in_use(transfer::OrderCheck::Side::Device), 0u);
    twins.wrapped->synchronize();
    EXPECT_EQ(order->bytes_in_use(transfer::OrderCheck::Side::Device), 0u)
        << "work on that many bytes of device memory may still be going on";
  }
}

}  // namespace
}  // namespace optim_offload::testing
