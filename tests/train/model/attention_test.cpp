#include "train/model/attention.h"

#include <cmath>

#include "train/support.h"

namespace optim_offload::train {
namespace {

ModelConfig attention_shape() {
  ModelConfig config;
  config.dim = 24;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.init_std = 0.3;
  return config;
}

TEST(Attention, SharesKeyHeadsInGroupsOfNeighbours) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  const auto grouped_shape = attention_shape();
  auto full_shape = grouped_shape;
  full_shape.kv_heads = full_shape.heads;
  const Attention grouped(grouped_shape, torch::kFloat32);
  const Attention full(full_shape, torch::kFloat32);
  // The full one gets each key and value head of the grouped one three times in a row.
  auto to = full.named_parameters();
  for (const auto& item : grouped.named_parameters()) {
    auto value = item.value();
    if (item.key() == "k_proj.weight" || item.key() == "v_proj.weight") {
      value = value.view({2, 8, 24}).repeat_interleave(3, 0).reshape({48, 24});
    }
    to[item.key()].copy_(value);
  }
  const Rope rope(8, 16, 100.0, torch::kCPU);
  const auto x = torch::randn({2, 10, 24});
  // Another kernel may serve the grouped form: sums of 10 weights in another order.
  EXPECT_TRUE(torch::allclose(grouped.forward(x, rope), full.forward(x, rope), 1e-5, 1e-6));
}

TEST(Attention, EqualsItsFormula) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const auto config = attention_shape();
  const Attention attention(config, torch::kFloat32);
  const auto p = attention.named_parameters();
  p["q_norm.weight"].uniform_(0.5, 1.5);
  p["k_norm.weight"].uniform_(0.5, 1.5);
  const Rope rope(8, 16, 100.0, torch::kCPU);
  const auto x = torch::randn({1, 7, 24});

  const auto normed = [&](const torch::Tensor& y, const std::string& name) {
    return y / (y.square().mean(-1, true) + config.norm_eps).sqrt() * p[name + "_norm.weight"];
  };
  const auto heads = [&](const std::string& name, int64_t count) {
    return at::linear(x, p[name + "_proj.weight"]).view({1, 7, count, 8}).transpose(1, 2);
  };
  const auto q = rope.apply(normed(heads("q", 6), "q"));
  const auto k = rope.apply(normed(heads("k", 2), "k")).repeat_interleave(3, 1);
  const auto v = heads("v", 2).repeat_interleave(3, 1);
  const auto hidden = torch::ones({7, 7}, torch::kBool).triu(1);
  const auto scores = (q.matmul(k.transpose(-1, -2)) / std::sqrt(8.0)).masked_fill(hidden, -1e30);
  const auto y = scores.softmax(-1).matmul(v).transpose(1, 2).reshape({1, 7, 48});
  EXPECT_TRUE(
      torch::allclose(attention.forward(x, rope), at::linear(y, p["o_proj.weight"]), 1e-5, 1e-6));
}

TEST(Attention, ACacheGivesTheSameAsTheWholeSequence) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const Attention attention(attention_shape(), torch::kFloat32);
  const Rope rope(8, 16, 100.0, torch::kCPU);
  const auto x = torch::randn({2, 9, 24});
  const auto whole = attention.forward(x, rope);
  KVCache cache;
  auto part = attention.forward(x.narrow(1, 0, 5), rope, &cache);
  EXPECT_TRUE(torch::allclose(part, whole.narrow(1, 0, 5), 1e-5, 1e-6));
  for (int64_t t = 5; t < 9; ++t) {
    part = attention.forward(x.narrow(1, t, 1), rope, &cache);
    EXPECT_TRUE(torch::allclose(part, whole.narrow(1, t, 1), 1e-5, 1e-6)) << t;
  }
  EXPECT_EQ(cache.length(), 9);
  EXPECT_TRUE(contains(error_of([&] { attention.forward(x.narrow(1, 0, 2), rope, &cache); }),
                       "one token at a time"));
}

}  // namespace
}  // namespace optim_offload::train
