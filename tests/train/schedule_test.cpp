#include "train/schedule.h"

#include <cmath>

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "train/support.h"

namespace optim_offload::train {
namespace {

TEST(Schedule, WarmsUpThenFallsAlongACosine) {
  const ScheduleConfig c{.kind = "cosine", .steps = 105, .warmup_steps = 5, .min_lr_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(c, 0), 0.2);
  EXPECT_DOUBLE_EQ(schedule_factor(c, 3), 0.8);
  EXPECT_DOUBLE_EQ(schedule_factor(c, 4), 1.0);
  EXPECT_NEAR(schedule_factor(c, 54), 0.55, 1e-12);  // half way from 4 to 104
  EXPECT_NEAR(schedule_factor(c, 29), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(schedule_factor(c, 104), 0.1, 1e-12);
  EXPECT_NEAR(schedule_factor(c, 1000), 0.1, 1e-12);
  for (int64_t step = 5; step < 105; ++step) {
    EXPECT_LT(schedule_factor(c, step), schedule_factor(c, step - 1)) << step;
  }
}

TEST(Schedule, ConstantStaysUpAndShortRunsAreFinite) {
  const ScheduleConfig constant{
      .kind = "constant", .steps = 10, .warmup_steps = 2, .min_lr_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(constant, 0), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(constant, 9), 1.0);
  const ScheduleConfig one{.kind = "cosine", .steps = 1, .warmup_steps = 0, .min_lr_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(one, 0), 1.0);
  const ScheduleConfig all_warm{
      .kind = "cosine", .steps = 4, .warmup_steps = 4, .min_lr_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(all_warm, 3), 1.0);
}

TEST(Schedule, DrivesEachGroupFromItsOwnRate) {
  using torch::optim::OptimizerParamGroup;
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{torch::ones({2}).requires_grad_()});
  groups.emplace_back(std::vector<torch::Tensor>{torch::ones({2}).requires_grad_()},
                      std::make_unique<torch::optim::AdamWOptions>(0.5));
  torch::optim::AdamW optimizer(groups, torch::optim::AdamWOptions(0.01));
  const ScheduleConfig config{.kind = "cosine", .steps = 20, .warmup_steps = 4};
  LrSchedule schedule(optimizer, config);
  for (const int64_t step : {0, 3, 10, 19, 2}) {
    schedule.apply(step);
    const double factor = schedule_factor(config, step);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.01 * factor);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), 0.5 * factor);
    EXPECT_DOUBLE_EQ(schedule.lr(), 0.01 * factor);
  }
}

TEST(Schedule, RefusesGroupsThatCameLater) {
  torch::optim::SGD optimizer({torch::ones({2}).requires_grad_()}, torch::optim::SGDOptions(0.1));
  LrSchedule schedule(optimizer, {});
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({torch::ones({3}).requires_grad_()}));
  EXPECT_TRUE(contains(error_of([&] { schedule.apply(0); }), "2 parameter groups and had 1"));
}

}  // namespace
}  // namespace optim_offload::train
