#include "bench/check.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/model.h"
#include "bench/optimizers.h"

namespace optim_offload::bench {
namespace {

TEST(RequireSameBits, ComparesBitsNotValues) {
  const auto zero = torch::zeros({4});
  const auto negative = zero.neg();
  ASSERT_TRUE(torch::equal(zero, negative));
  EXPECT_THROW(require_same_bits(zero, negative, "x"), c10::Error);
  const auto nan = torch::full({4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_NO_THROW(require_same_bits(nan, nan.clone(), "x"));
}

TEST(RequireSameBits, NamesTheElement) {
  const auto a = torch::arange(6, torch::kFloat).reshape({2, 3});
  auto b = a.clone();
  b[1][1] = 9;
  try {
    require_same_bits(a, b, "weight");
    FAIL() << "did not throw";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("weight differs"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("element 4 of 6"), std::string::npos);
  }
}

TEST(RequireSameBits, ComparesShapeAndType) {
  EXPECT_THROW(require_same_bits(torch::zeros({2, 3}), torch::zeros({3, 2}), "x"), c10::Error);
  EXPECT_THROW(require_same_bits(torch::zeros({2}), torch::zeros({2}, torch::kDouble), "x"),
               c10::Error);
}

class SavedStateTest : public testing::Test {
 protected:
  // A plain optimizer after `steps`, and what it saves.
  std::vector<SavedState> after(int64_t steps, OptimizerKind kind = OptimizerKind::AdamW) {
    parameters_ = make_parameters(spec_, c10::ScalarType::Float, c10::Device(c10::kCPU), 1);
    optimizer_ = make_optimizer(kind, parameters_);
    for (int64_t i = 0; i < steps; ++i) {
      fill_gradients(parameters_, static_cast<uint64_t>(i));
      optimizer_->step();
    }
    return saved_state(*optimizer_, parameters_);
  }

  ModelSpec spec_ = decoder_spec("x", 1, 8, 16);
  NamedParameters parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

TEST_F(SavedStateTest, HoldsTensorsAndCountersOfEachParameter) {
  const auto states = after(3);
  ASSERT_EQ(states.size(), spec_.parameters.size());
  for (size_t i = 0; i < states.size(); ++i) {
    ASSERT_EQ(states[i].size(), 3u);
    EXPECT_EQ(states[i].at("step").item<int64_t>(), 3);
    EXPECT_EQ(states[i].at("exp_avg").sizes(), parameters_[i].value().sizes());
  }
}

TEST_F(SavedStateTest, SameHistorySameState) {
  const auto a = after(3);
  const auto b = after(3);
  EXPECT_NO_THROW(require_same_state(a, b, parameters_));
}

TEST_F(SavedStateTest, ADifferenceInOneBitIsFound) {
  const auto a = after(3, OptimizerKind::SGD);
  auto b = after(3, OptimizerKind::SGD);
  auto buffer = b[2].at("momentum_buffer").flatten();
  buffer[0] = std::nextafter(buffer[0].item<float>(), 1e9f);
  b[2]["momentum_buffer"] = buffer.view(a[2].at("momentum_buffer").sizes());
  EXPECT_THROW(require_same_state(a, b, parameters_), c10::Error);
}

TEST_F(SavedStateTest, ALostCounterIsFound) {
  const auto a = after(3);
  const auto b = after(2);
  EXPECT_THROW(require_same_state(a, b, parameters_), c10::Error);
}

TEST_F(SavedStateTest, SavingNowhereCountsTheBytes) {
  after(1);
  EXPECT_GT(save_to_nowhere(*optimizer_), 8 * spec_.numel());
}

}  // namespace
}  // namespace optim_offload::bench
