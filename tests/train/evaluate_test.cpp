#include "train/evaluate.h"

#include "train/data/reverse_task.h"
#include "train/support.h"

namespace optim_offload::train {
namespace {

CausalLM random_model(uint64_t seed) {
  torch::manual_seed(seed);
  ModelConfig config;
  config.dim = 32;
  config.max_positions = 64;
  config.init_std = 0.3;
  return CausalLM(config, torch::kFloat32);
}

TEST(Decode, EqualsGreedyChoiceWithTheWholePrefixEachTime) {
  const auto model = random_model(1);
  const std::vector<std::string> pieces = {"hello you", "and  more"};
  const auto written = decode_reverse(model, pieces);
  ASSERT_EQ(written.sizes(), (std::vector<int64_t>{2, 10}));

  const torch::NoGradGuard no_grad;
  auto prefix = make_prompts(pieces);
  for (int64_t i = 0; i < 10; ++i) {
    const auto next = model.forward(prefix).select(1, prefix.size(1) - 1).argmax(-1, true);
    prefix = torch::cat({prefix, next}, 1);
  }
  EXPECT_TRUE(torch::equal(written, prefix.slice(1, 11)));
}

TEST(Decode, DrawsNoRandomNumbersAndLeavesNoGradients) {
  const auto model = random_model(2);
  torch::manual_seed(9);
  const auto expected = torch::rand({4});
  torch::manual_seed(9);
  evaluate_reverse(model, {"one", "three", "five"}, 2);
  EXPECT_TRUE(same_bits(torch::rand({4}), expected));
  for (const auto& p : model.parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(Accuracy, CountsBytesAtTheirPlacesAndWholePieces) {
  const auto written = torch::tensor({{int64_t{'c'}, int64_t{'b'}, int64_t{'a'}, kEnd},
                                      {int64_t{'z'}, int64_t{'z'}, int64_t{'x'}, kEnd},
                                      {int64_t{'c'}, int64_t{'b'}, int64_t{'a'}, int64_t{'a'}}});
  const auto accuracy = compare_reverse(written, {"abc", "xyz", "abc"});
  EXPECT_EQ(accuracy.pieces, 3);
  EXPECT_EQ(accuracy.exact_pieces, 1);  // the third does not end where it should
  EXPECT_EQ(accuracy.bytes, 9);
  EXPECT_EQ(accuracy.right_bytes, 3 + 2 + 3);
  EXPECT_DOUBLE_EQ(accuracy.exact_match(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(accuracy.character(), 8.0 / 9);
  EXPECT_EQ(Accuracy().character(), 0.0);
}

TEST(Accuracy, CountsEveryPieceOnceWhateverTheBatches) {
  const auto model = random_model(3);
  const std::vector<std::string> pieces = {"ab", "xyz", "cd", "ef", "pqr", "gh", "longer"};
  const auto one = evaluate_reverse(model, pieces, 1);
  const auto many = evaluate_reverse(model, pieces, 3);
  EXPECT_EQ(one.pieces, 7);
  EXPECT_EQ(one.bytes, 4 * 2 + 2 * 3 + 6);
  EXPECT_EQ(many.pieces, 7);
  EXPECT_EQ(many.bytes, one.bytes);
  // An untrained model does not know the task.
  EXPECT_LT(one.character(), 0.5);
}

TEST(Text, ShowsBytesThatDoNotPrint) {
  const auto tokens =
      torch::tensor({int64_t{'a'}, int64_t{10}, int64_t{0xe9}, kSeparator, kEnd, int64_t{'b'}});
  EXPECT_EQ(tokens_to_text(tokens), "a\\x0a\\xe9<257>");
}

}  // namespace
}  // namespace optim_offload::train
