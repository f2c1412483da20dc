// Several wrappers on one device, each in a thread of its own.
#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

OFFLOAD_TEST(Threads, TwoWrappersOnOneDeviceAtTheSameTime) {
  for (const auto first_mode : kModes) {
    for (const auto second_mode : kModes) {
      SCOPED_TRACE(to_string(first_mode) + " and " + to_string(second_mode));
      Twins first(device, small_decoder(2), recipe("AdamW"), offload_options(first_mode, 1024));
      Twins second(device, small_decoder(2), recipe("NormBlend"),
                   offload_options(second_mode, 2048), even_and_odd, /*seed=*/9);
      first.device_is_shared = second.device_is_shared = true;
      std::array<std::thread, 2> threads{std::thread([&] { first.steps(6); }),
                                         std::thread([&] { second.steps(6); })};
      for (auto& thread : threads) thread.join();
      ASSERT_TRUE(first.same());
      ASSERT_TRUE(second.same());
    }
  }
}

// One is destroyed, saved and loaded while the other steps.
OFFLOAD_TEST(Threads, OneIsRemadeWhileTheOtherSteps) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins steady(device, small_decoder(2), recipe("Adam"), offload_options(mode, 1024));
    Twins remade(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024), nullptr,
                 /*seed=*/5);
    steady.device_is_shared = remade.device_is_shared = true;
    std::thread thread([&] { steady.steps(12); });
    for (int round = 0; round < 4; ++round) {
      remade.step();
      remade.resume(offload_options(mode, 2048));
    }
    thread.join();
    ASSERT_TRUE(steady.same());
    ASSERT_TRUE(remade.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
