#include "train/model/transformer.h"

#include <map>
#include <set>

#include "train/support.h"

namespace optim_offload::train {
namespace {

ModelConfig small_shape() {
  ModelConfig config;
  config.vocab_size = 50;
  config.dim = 24;
  config.layers = 2;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.ffn_dim = 40;
  config.max_positions = 32;
  return config;
}

TEST(CausalLM, HasTheNamesAndShapesOfItsFamily) {
  const CausalLM model(small_shape(), torch::kFloat32);
  std::map<std::string, std::vector<int64_t>> expected = {{"model.embed_tokens.weight", {50, 24}},
                                                          {"model.norm.weight", {24}},
                                                          {"lm_head.weight", {50, 24}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    expected[layer + "self_attn.q_proj.weight"] = {48, 24};
    expected[layer + "self_attn.k_proj.weight"] = {16, 24};
    expected[layer + "self_attn.v_proj.weight"] = {16, 24};
    expected[layer + "self_attn.o_proj.weight"] = {24, 48};
    expected[layer + "self_attn.q_norm.weight"] = {8};
    expected[layer + "self_attn.k_norm.weight"] = {8};
    expected[layer + "mlp.gate_proj.weight"] = {40, 24};
    expected[layer + "mlp.up_proj.weight"] = {40, 24};
    expected[layer + "mlp.down_proj.weight"] = {24, 40};
    expected[layer + "input_layernorm.weight"] = {24};
    expected[layer + "post_attention_layernorm.weight"] = {24};
  }
  std::map<std::string, std::vector<int64_t>> actual;
  int64_t elements = 0;
  for (const auto& item : model.named_parameters()) {
    actual[item.key()] = item.value().sizes().vec();
    elements += item.value().numel();
    EXPECT_TRUE(item.value().requires_grad()) << item.key();
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(model.parameter_count(), elements);
  const auto logits = model.forward(torch::zeros({3, 5}, torch::kInt64));
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{3, 5, 50}));
}

TEST(CausalLM, ATiedHeadIsTheEmbeddingAndCountsOnce) {
  auto config = small_shape();
  config.tied = true;
  const CausalLM model(config, torch::kFloat32);
  const auto p = model.named_parameters();
  EXPECT_TRUE(p["lm_head.weight"].is_same(p["model.embed_tokens.weight"]));
  EXPECT_EQ(model.parameter_count(),
            CausalLM(small_shape(), torch::kFloat32).parameter_count() - 50 * 24);
}

TEST(CausalLM, LaterTokensDoNotChangeEarlierLogits) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  auto config = small_shape();
  config.init_std = 0.3;
  const CausalLM model(config, torch::kFloat32);
  const auto tokens = torch::randint(0, 50, {2, 12}, torch::kInt64);
  const auto logits = model.forward(tokens);
  for (const int64_t changed : {11, 7, 1}) {
    auto other = tokens.clone();
    other.select(1, changed).add_(1).remainder_(50);
    const auto moved = model.forward(other);
    EXPECT_TRUE(same_bits(moved.narrow(1, 0, changed), logits.narrow(1, 0, changed))) << changed;
    const auto change = (moved - logits).abs().amax(at::IntArrayRef{0, 2});
    for (int64_t t = changed; t < 12; ++t) EXPECT_GT(change[t].item<float>(), 0) << changed;
  }
}

TEST(CausalLM, TheSeedDecidesTheWeights) {
  const auto make = [](uint64_t seed) {
    torch::manual_seed(seed);
    return CausalLM(small_shape(), torch::kFloat32);
  };
  const auto a = make(5);
  const auto b = make(5);
  const auto c = make(6);
  expect_same_parameters(a, b);
  EXPECT_FALSE(
      same_bits(a.named_parameters()["lm_head.weight"], c.named_parameters()["lm_head.weight"]));
}

TEST(CausalLM, WorksInBFloat16) {
  const CausalLM model(small_shape(), torch::kBFloat16);
  const auto logits = model.forward(torch::ones({1, 6}, torch::kInt64));
  EXPECT_EQ(logits.dtype(), torch::kBFloat16);
  logits.to(torch::kFloat32).sum().backward();
  for (const auto& item : model.named_parameters()) {
    EXPECT_EQ(item.value().grad().dtype(), torch::kBFloat16) << item.key();
  }
}

TEST(CausalLM, RefusesShapesThatMakeNoSense) {
  auto config = small_shape();
  config.kv_heads = 4;
  EXPECT_TRUE(contains(error_of([&] { CausalLM(config, torch::kFloat32); }), "kv_heads = 4"));
  config = small_shape();
  config.layers = 0;
  EXPECT_TRUE(contains(error_of([&] { CausalLM(config, torch::kFloat32); }), "layers = 0"));
}

}  // namespace
}  // namespace optim_offload::train
