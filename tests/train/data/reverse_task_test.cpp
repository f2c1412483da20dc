#include "train/data/reverse_task.h"

#include "train/support.h"

namespace optim_offload::train {
namespace {

torch::Tensor row(std::vector<int64_t> values) { return torch::tensor(values, torch::kInt64); }

TEST(ReverseTask, LaysOutTokensAndTargets) {
  const auto batch = make_reverse_batch({"abc", "\xff"});
  constexpr int64_t kNone = kNoTarget;
  EXPECT_TRUE(
      torch::equal(batch.tokens[0], row({kBegin, 'a', 'b', 'c', kSeparator, 'c', 'b', 'a'})));
  EXPECT_TRUE(
      torch::equal(batch.targets[0], row({kNone, kNone, kNone, kNone, 'c', 'b', 'a', kEnd})));
  EXPECT_TRUE(
      torch::equal(batch.tokens[1], row({kBegin, 255, kSeparator, 255, kEnd, kEnd, kEnd, kEnd})));
  EXPECT_TRUE(
      torch::equal(batch.targets[1], row({kNone, kNone, 255, kEnd, kNone, kNone, kNone, kNone})));
  EXPECT_EQ(batch.target_count, 4 + 2);
  EXPECT_EQ(batch.target_count, (batch.targets != kNone).sum().item<int64_t>());
  EXPECT_EQ(batch.token_count, 8 + 4);
}

TEST(ReverseTask, EachTargetIsTheNextToken) {
  const auto batch = make_reverse_batch({"hello there", "hi"});
  const auto next = batch.tokens.slice(1, 1);
  const auto targets = batch.targets.slice(1, 0, -1);
  const auto used = targets != kNoTarget;
  EXPECT_TRUE(torch::equal(next.masked_select(used), targets.masked_select(used)));
}

TEST(ReverseTask, PromptsEndBeforeTheAnswer) {
  const auto prompts = make_prompts({"abc", "xyz"});
  EXPECT_TRUE(torch::equal(prompts[1], row({kBegin, 'x', 'y', 'z', kSeparator})));
  EXPECT_TRUE(torch::equal(prompts, make_reverse_batch({"abc", "xyz"}).tokens.slice(1, 0, 5)));
  EXPECT_TRUE(contains(error_of([] { make_prompts({"abc", "xy"}); }), "group pieces by length"));
  EXPECT_TRUE(contains(error_of([] { make_reverse_batch({}); }), "no pieces"));
}

}  // namespace
}  // namespace optim_offload::train
