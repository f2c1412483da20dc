// A load that fails changes nothing.
#include <sstream>

#include <gtest/gtest.h>
#include <torch/serialize/archive.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

void expect_refused(Twins& twins, const std::string& archive) {
  EXPECT_THROW(load_saved(*twins.wrapped, archive), c10::Error);
  ASSERT_TRUE(twins.same()) << "the failed load changed something";
  twins.step();
  ASSERT_TRUE(twins.same());
}

OFFLOAD_TEST(BadArchive, Truncated) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    const auto archive = saved(*twins.wrapped);
    for (const size_t size : {size_t(0), archive.size() / 2, archive.size() - 1}) {
      ASSERT_NO_FATAL_FAILURE(expect_refused(twins, archive.substr(0, size)));
    }
  }
}

// LibTorch reports a missing key with a std::runtime_error (found by fuzzing).
OFFLOAD_TEST(BadArchive, WithoutKeys) {
  torch::serialize::OutputArchive archive;
  archive.write("something", torch::ones({2}));
  std::ostringstream bytes;
  archive.save_to(bytes);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    ASSERT_NO_FATAL_FAILURE(expect_refused(twins, bytes.str()));
  }
}

OFFLOAD_TEST(BadArchive, OfAnotherOptimizer) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    Twins other(device, small_decoder(1), recipe("SGD"), offload_options(mode, 1024));
    twins.steps(2);
    other.steps(2);
    ASSERT_NO_FATAL_FAILURE(expect_refused(twins, saved(*other.wrapped)));
  }
}

OFFLOAD_TEST(BadArchive, OfOtherGroups) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024));
    Twins more_groups(device, small_decoder(1), recipe("AdamW"), offload_options(mode, 1024),
                      even_and_odd);
    Twins more_parameters(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    more_groups.steps(3);
    more_parameters.steps(3);
    ASSERT_NO_FATAL_FAILURE(expect_refused(twins, saved(*more_groups.wrapped)));
    ASSERT_NO_FATAL_FAILURE(expect_refused(twins, saved(*more_parameters.wrapped)));
  }
}

// LibTorch itself takes state of any shape and fails in the next step, or worse.
OFFLOAD_TEST(BadArchive, OfOtherShapes) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    auto specs = small_decoder(1);
    Twins twins(device, specs, recipe("AdamW"), offload_options(mode, 1024));
    specs[1].shape = {19, 20};
    Twins other(device, specs, recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    other.steps(3);
    ASSERT_NO_FATAL_FAILURE(expect_refused(twins, saved(*other.wrapped)));
  }
}

}  // namespace
}  // namespace optim_offload::testing
