#include "train/loss.h"

#include "train/gradients.h"
#include "train/support.h"

namespace optim_offload::train {
namespace {

ModelConfig shape() {
  ModelConfig config;
  config.dim = 32;
  config.max_positions = 32;
  config.init_std = 0.2;
  return config;
}

std::vector<torch::Tensor> gradients_of(const CausalLM& model, const std::vector<Batch>& batches,
                                        torch::Tensor& loss) {
  for (const auto& p : model.parameters()) p.mutable_grad() = torch::Tensor();
  loss = accumulate_gradients(model, batches);
  std::vector<torch::Tensor> gradients;
  for (const auto& p : unique_parameters(model)) gradients.push_back(p.grad().clone());
  return gradients;
}

TEST(Accumulation, EqualsTheBigBatch) {
  torch::manual_seed(1);
  const CausalLM model(shape(), torch::kFloat32);
  const std::vector<std::string> pieces = {"a long piece",   "tiny",    "x",
                                           "of some length", "mid one", "last"};
  const auto part = [&](int first, int last) {
    return make_reverse_batch({pieces.begin() + first, pieces.begin() + last});
  };
  torch::Tensor whole_loss;
  torch::Tensor split_loss;
  const auto whole = gradients_of(model, {part(0, 6)}, whole_loss);
  // Uneven parts with very different numbers of targets: a mean of means would be far off.
  const auto split = gradients_of(model, {part(0, 1), part(1, 3), part(3, 6)}, split_loss);
  EXPECT_NEAR(whole_loss.item<double>(), split_loss.item<double>(), 1e-5);
  for (size_t i = 0; i < whole.size(); ++i) {
    // The same products, added in another order in fp32.
    const double scale = whole[i].abs().max().item<double>();
    EXPECT_LE((whole[i] - split[i]).abs().max().item<double>(), 1e-5 * scale + 1e-7) << i;
  }
}

TEST(Accumulation, LossIsTheMeanOverTheAnswersOnly) {
  torch::manual_seed(2);
  const CausalLM model(shape(), torch::kFloat32);
  const auto batch = make_reverse_batch({"abc", "longer"});
  const auto loss = accumulate_gradients(model, {batch});
  const torch::NoGradGuard no_grad;
  const auto log_p = model.forward(batch.tokens).log_softmax(-1);
  double sum = 0;
  int count = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < batch.targets.size(1); ++t) {
      const auto target = batch.targets[b][t].item<int64_t>();
      if (target == kNoTarget) continue;
      sum -= log_p[b][t][target].item<double>();
      ++count;
    }
  }
  EXPECT_EQ(count, 4 + 7);
  EXPECT_NEAR(loss.item<double>(), sum / count, 1e-5);
  EXPECT_FALSE(loss.requires_grad());
}

TEST(Accumulation, FillDoesNotChangeTheLoss) {
  torch::manual_seed(3);
  const CausalLM model(shape(), torch::kFloat32);
  auto batch = make_reverse_batch({"ab", "longer one"});
  torch::Tensor first;
  torch::Tensor second;
  const auto a = gradients_of(model, {batch}, first);
  batch.tokens[0].slice(0, sequence_length(2)).fill_('z');
  const auto b = gradients_of(model, {batch}, second);
  EXPECT_TRUE(same_bits(first, second));
  // The embedding's gradient has rows for other tokens; all zero, but with signs of their own.
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
}

}  // namespace
}  // namespace optim_offload::train
