#include "optimizers/add_group.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "optim_offload/optimizers/muon.h"
#include "optimizers/optimizer_kit.h"

namespace optim_offload {
namespace {

using torch::optim::OptimizerParamGroup;

class Counting : public torch::optim::Optimizer {
 public:
  using Optimizer::Optimizer;
  torch::Tensor step(LossClosure) override { return {}; }
};

TEST(AddGroup, KeepsOptionsThatLibTorchDoesNotKnow) {
  Counting optimizer(std::vector<torch::Tensor>{parameter({3}, 1)},
                     std::make_unique<MuonOptions>(0.5));
  const OptimizerParamGroup group({parameter({3}, 2)},
                                  std::make_unique<MuonOptions>(MuonOptions(0.25).step(7)));
  add_group_keeping_options(optimizer, group);
  ASSERT_EQ(optimizer.param_groups().size(), 2u);
  const auto& kept = dynamic_cast<const MuonOptions&>(optimizer.param_groups()[1].options());
  EXPECT_DOUBLE_EQ(kept.lr(), 0.25);
  EXPECT_EQ(kept.step(), 7);
  EXPECT_NE(&kept, &group.options());
}

TEST(AddGroup, GivesDefaultsToAGroupWithoutOptions) {
  Counting optimizer(std::vector<torch::Tensor>{parameter({3}, 1)},
                     std::make_unique<MuonOptions>(0.5));
  add_group_keeping_options(optimizer, OptimizerParamGroup({parameter({3}, 2)}));
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), 0.5);
}

// Whatever a constructor or a merge put there, each group ends with a copy of what was given.
TEST(AddGroup, RepairsGroupsOfTheConstructor) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{parameter({3}, 1)},
                      std::make_unique<MuonOptions>(0.25));
  Counting optimizer(groups, std::make_unique<MuonOptions>(0.5));
  optimizer.param_groups()[0].set_options(std::make_unique<MuonOptions>(0.5));
  keep_group_options(optimizer, groups);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.25);
}

TEST(AddGroup, KnowsLibTorchsOptions) {
  EXPECT_TRUE(is_libtorch_options(torch::optim::AdamWOptions()));
  EXPECT_FALSE(is_libtorch_options(MuonOptions()));
}

}  // namespace
}  // namespace optim_offload
