#include <gtest/gtest.h>

#include "optim_offload/optimizers/muon.h"
#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

TEST(MuonParamGroups, SortsByShapeAndName) {
  const auto embedding = parameter({8, 4}, 1);
  const auto matrix = parameter({4, 4}, 2);
  const auto norm = parameter({4}, 3);
  const auto frozen = numbers({4, 4}, 4);
  torch::OrderedDict<std::string, torch::Tensor> named;
  named.insert("model.embed_tokens.weight", embedding);
  named.insert("model.layers.0.self_attn.q_proj.weight", matrix);
  named.insert("model.layers.0.input_layernorm.weight", norm);
  named.insert("model.layers.0.frozen.weight", frozen);
  named.insert("tied.weight", embedding);  // A name that alone would make it a hidden matrix.
  named.insert("lm_head.weight", parameter({8, 4}, 5));
  const auto groups = muon_param_groups(named, MuonOptions(0.02), MuonOptions(0.003));
  ASSERT_EQ(groups.size(), 2u);
  ASSERT_EQ(groups[0].params().size(), 1u);
  EXPECT_TRUE(groups[0].params()[0].is_same(matrix));
  ASSERT_EQ(groups[1].params().size(), 3u);
  EXPECT_TRUE(groups[1].params()[0].is_same(embedding));
  EXPECT_TRUE(groups[1].params()[1].is_same(norm));
  const auto& first = static_cast<const MuonOptions&>(groups[0].options());
  const auto& second = static_cast<const MuonOptions&>(groups[1].options());
  EXPECT_FALSE(first.adamw());
  EXPECT_TRUE(second.adamw());
  EXPECT_DOUBLE_EQ(first.lr(), 0.02);
  EXPECT_DOUBLE_EQ(second.lr(), 0.003);
  EXPECT_THROW(muon_param_groups(named, {}, std::nullopt, "("), c10::Error);
}

TEST(MuonParamGroups, LeavesOutEmptyGroups) {
  torch::OrderedDict<std::string, torch::Tensor> named;
  named.insert("norm.weight", parameter({4}, 3));
  const auto groups = muon_param_groups(named, MuonOptions(0.02));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(static_cast<const MuonOptions&>(groups[0].options()).adamw());
  EXPECT_DOUBLE_EQ(groups[0].options().get_lr(), 0.02);
}

}  // namespace
}  // namespace optim_offload
