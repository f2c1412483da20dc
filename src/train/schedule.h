#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

namespace optim_offload::train {

/// Shape of the learning rate over a run.
struct ScheduleConfig {
  std::string kind = "cosine";  ///< After the warm-up: "cosine" or "constant".
  int64_t steps = 1;            ///< Of the whole run.
  int64_t warmup_steps = 0;  ///< The rate rises linearly over these, and is full at the last one.
  double min_lr_ratio =
      0.1;  ///< Where the cosine ends, of the full rate; reached in the last step.
};

/// Factor on the full rate in step `step`, counted from 0. A pure function: the scheduler's
/// position is the step.
double schedule_factor(const ScheduleConfig& config, int64_t step);

/// Drives the rates of any optimizer's parameter groups, each from the rate it was made with.
class LrSchedule {
 public:
  /// Takes each group's present rate as its full one: make it before a checkpoint is loaded, for
  /// that puts the rates of the moment of saving into the groups.
  LrSchedule(torch::optim::Optimizer& optimizer, ScheduleConfig config);

  /// Sets the rates for step `step`. Call it before the optimizer's step.
  void apply(int64_t step);

  /// The first group's rate as apply() left it.
  double lr() const;

 private:
  torch::optim::Optimizer* optimizer_;
  ScheduleConfig config_;
  std::vector<double> full_;  // one per group
};

}  // namespace optim_offload::train
