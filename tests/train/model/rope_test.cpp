#include "train/model/rope.h"

#include <cmath>

#include "train/support.h"

namespace optim_offload::train {
namespace {

TEST(Rope, FirstPositionIsLeftAlone) {
  const Rope rope(8, 4, 10000.0, torch::kCPU);
  const auto x = torch::randn({2, 3, 1, 8});
  EXPECT_TRUE(same_bits(rope.apply(x, 0), x));
}

TEST(Rope, TurnsEachPairByItsAngle) {
  const double theta = 100.0;
  const Rope rope(4, 16, theta, torch::kCPU);
  const auto x = torch::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({1, 1, 1, 4});
  const auto y = rope.apply(x, 7).flatten();
  for (int d = 0; d < 2; ++d) {
    const double angle = 7 * std::pow(theta, -2.0 * d / 4);
    const double a = d + 1;
    const double b = d + 3;
    EXPECT_NEAR(y[d].item<float>(), a * std::cos(angle) - b * std::sin(angle), 1e-6);
    EXPECT_NEAR(y[d + 2].item<float>(), b * std::cos(angle) + a * std::sin(angle), 1e-6);
  }
}

TEST(Rope, KeepsNormsAndDependsOnDistanceOnly) {
  const Rope rope(16, 64, 100.0, torch::kCPU);
  const auto q = torch::randn({1, 1, 1, 16});
  const auto k = torch::randn({1, 1, 1, 16});
  EXPECT_NEAR(rope.apply(q, 40).norm().item<float>(), q.norm().item<float>(), 1e-5);
  const auto score = [&](int64_t i, int64_t j) {
    return (rope.apply(q, i) * rope.apply(k, j)).sum().item<float>();
  };
  // Rounding of 16 products of order 1 in fp32.
  EXPECT_NEAR(score(10, 3), score(50, 43), 1e-4);
  EXPECT_NEAR(score(5, 5), score(60, 60), 1e-4);
  EXPECT_GT(std::abs(score(10, 3) - score(10, 9)), 1e-3);
}

TEST(Rope, AWindowEqualsThePositionsOfTheWhole) {
  const Rope rope(8, 32, 100.0, torch::kCPU);
  const auto x = torch::randn({2, 2, 12, 8});
  const auto whole = rope.apply(x);
  EXPECT_TRUE(same_bits(rope.apply(x.narrow(2, 5, 4), 5), whole.narrow(2, 5, 4)));
}

TEST(Rope, KeepsTheDtypeAndRefusesWhatItCannotTurn) {
  const Rope rope(8, 4, 100.0, torch::kCPU);
  EXPECT_EQ(rope.apply(torch::randn({1, 1, 2, 8}).to(torch::kBFloat16)).dtype(), torch::kBFloat16);
  EXPECT_TRUE(contains(error_of([&] {
                         rope.apply(torch::randn({1, 1, 3, 8}), 2);
                       }),
                       "positions 2 to 4 are outside of RoPE's 4"));
  EXPECT_TRUE(contains(error_of([] { Rope(7, 4, 100.0, torch::kCPU); }), "head_dim = 7"));
}

}  // namespace
}  // namespace optim_offload::train
