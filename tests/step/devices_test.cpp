// One wrapper over parameters that lie on several devices. On two CUDA devices: tests/cuda.
#include <set>

#include <gtest/gtest.h>

#include "support/twins.h"
#include "transfer/device_of.h"

namespace optim_offload::testing {
namespace {

class SeveralDevices : public ::testing::TestWithParam<Mode> {
 protected:
  TestDevice device_{DeviceKind::Simulated, std::chrono::microseconds(20),
                     /*simulated_devices=*/3};
};

TEST_P(SeveralDevices, EveryOptimizer_Simulated) {
  for (const auto& recipe : recipes()) {
    SCOPED_TRACE(recipe.name);
    Twins twins(device_, small_decoder(2), recipe, offload_options(GetParam(), 2048, 2),
                even_and_odd);
    std::set<std::string> used;
    for (const auto& param : twins.wrapped_model.tensors()) {
      used.insert(transfer::device_of(param).str());
    }
    ASSERT_EQ(used.size(), 2u);
    twins.steps(3);
    ASSERT_TRUE(twins.same());
    twins.steps(2, [](size_t i, const std::string&) { return i % 3 != 0; });
    ASSERT_TRUE(twins.same());
    expect_copies_done();
  }
}

TEST_P(SeveralDevices, ChunksAndPiecesAreOfOneDeviceEach_Simulated) {
  Twins twins(device_, small_decoder(2), recipe("AdamW"), offload_options(GetParam(), 1 << 20));
  twins.steps(2);
  // Two layers and what is in none; each holds matrices and vectors of both devices, but the last.
  const auto stats = twins.wrapped->stats();
  EXPECT_EQ(stats.chunks, 5);
  EXPECT_EQ(stats.pieces, 2) << "small parameters of many chunks share a piece";
}

INSTANTIATE_TEST_SUITE_P(Modes, SeveralDevices, ::testing::ValuesIn(kModes),
                         [](const auto& info) { return to_string(info.param); });

}  // namespace
}  // namespace optim_offload::testing
