#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <c10/util/Exception.h>

namespace optim_offload::bench {
namespace {

TEST(Quantile, IsLinearBetweenNeighbours) {
  const std::vector<double> values = {40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 25);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 40);
}

TEST(Quantile, OfOneValueIsIt) { EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7); }

TEST(Quantile, RefusesNothingAndNonsense) {
  EXPECT_THROW(quantile({}, 0.5), c10::Error);
  EXPECT_THROW(quantile({1}, 1.5), c10::Error);
}

TEST(Summarize, OneSlowStepMovesTheMaximumNotTheMedian) {
  std::vector<double> values(10, 1.0);
  values[3] = 100;
  const Summary summary = summarize(values);
  EXPECT_EQ(summary.count, 10);
  EXPECT_DOUBLE_EQ(summary.median, 1);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.max, 100);
  EXPECT_GT(summary.p90, 1);
}

}  // namespace
}  // namespace optim_offload::bench
