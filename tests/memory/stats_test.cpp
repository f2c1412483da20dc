// What stats() says of bytes and memory.
#include <gtest/gtest.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(Stats, ZeroBeforeTheFirstStep) {
  Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(Mode::Streamed));
  const auto stats = twins.wrapped->stats();
  EXPECT_EQ(stats.steps, 0);
  EXPECT_EQ(stats.h2d_bytes, 0);
  EXPECT_EQ(stats.d2h_bytes, 0);
  EXPECT_EQ(stats.state_bytes, 0);
  EXPECT_EQ(stats.gigabytes_per_second(), 0.0);
}

OFFLOAD_TEST(Stats, BytesEachWay) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    // The same state in few large and many small tensors; each may be padded to 256 bytes.
    Twins twins(device, small_decoder(3), recipe("Adam"), offload_options(mode, 8192));
    twins.step();
    const auto bytes = state_bytes(*twins.plain);
    const auto padded = bytes + 256 * 3 * static_cast<int64_t>(twins.plain_model.parameters.size());
    auto stats = twins.wrapped->stats();
    EXPECT_EQ(stats.steps, 1);
    EXPECT_GT(stats.seconds, 0.0);
    EXPECT_GE(stats.seconds, stats.queue_seconds);
    EXPECT_GE(stats.host_seconds, 0);
    if (!device.copies()) {
      EXPECT_EQ(stats.h2d_bytes + stats.d2h_bytes, 0);
      EXPECT_EQ(stats.pinned_bytes, 0);
      continue;
    }
    EXPECT_EQ(stats.h2d_bytes, 0) << "there was nothing to bring up";
    EXPECT_GE(stats.d2h_bytes, bytes);
    EXPECT_LE(stats.d2h_bytes, padded);
    twins.steps(2);
    stats = twins.wrapped->stats();
    EXPECT_EQ(stats.steps, 3);
    EXPECT_GE(stats.h2d_bytes, bytes);
    EXPECT_LE(stats.h2d_bytes, padded);
    EXPECT_EQ(stats.d2h_bytes, stats.h2d_bytes);
    EXPECT_GE(stats.state_bytes, bytes);
    EXPECT_LE(stats.state_bytes, padded);
    EXPECT_GE(stats.pinned_bytes + stats.pageable_bytes, bytes);
    EXPECT_GT(stats.gigabytes_per_second(), 0.0);
    if (mode != Mode::AllAtOnce) {
      EXPECT_GE(stats.pieces, bytes / 8192);
    }
  }
}

// What the slot held of a tensor that the base has replaced is not copied.
OFFLOAD_TEST(Stats, AReplacedTensorComesHomeOnce) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe_of<ReplacingBlend>("ReplacingBlend"),
                offload_options(mode, 8192));
    twins.steps(3);
    ASSERT_TRUE(twins.same());
    const auto bytes = state_bytes(*twins.plain);
    const auto padded = bytes + 256 * 3 * static_cast<int64_t>(twins.plain_model.parameters.size());
    EXPECT_GE(twins.wrapped->stats().d2h_bytes, bytes);
    EXPECT_LE(twins.wrapped->stats().d2h_bytes, padded);
  }
}

// Parameters without a gradient need not travel.
OFFLOAD_TEST(Stats, WhatIsNotSteppedStays) {
  if (!device.copies()) return;
  for (const auto mode : kChunkedModes) {
    Twins twins(device, small_decoder(4), recipe("AdamW"), offload_options(mode, 8192));
    twins.steps(2);
    const auto all = twins.wrapped->stats().h2d_bytes;
    twins.step([](size_t, const std::string& name) {
      return name.find("layers.0.") != std::string::npos;
    });
    EXPECT_LT(twins.wrapped->stats().h2d_bytes, all / 2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Stats, HostMemoryIsConstant) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(3);
    const auto before = twins.wrapped->stats();
    for (int step = 0; step < 30; ++step) {
      twins.step([&](size_t i, const std::string&) { return (i + step) % 4 != 0; });
    }
    const auto after = twins.wrapped->stats();
    EXPECT_EQ(after.pinned_bytes, before.pinned_bytes);
    EXPECT_EQ(after.pageable_bytes, before.pageable_bytes);
    EXPECT_EQ(after.state_bytes, before.state_bytes);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Stats, PinMemoryOff) {
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), recipe("AdamW"),
                offload_options(mode, 1024).pin_memory(PinMemory::Off));
    twins.steps(3);
    EXPECT_EQ(twins.wrapped->stats().pinned_bytes, 0);
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
