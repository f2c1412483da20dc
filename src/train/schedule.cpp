#include "train/schedule.h"

#include <algorithm>
#include <cmath>

#include <c10/util/Exception.h>
#include <c10/util/MathConstants.h>

namespace optim_offload::train {

double schedule_factor(const ScheduleConfig& c, int64_t step) {
  if (step < c.warmup_steps) {
    return static_cast<double>(step + 1) / static_cast<double>(c.warmup_steps);
  }
  if (c.kind == "constant") return 1.0;
  // The full rate holds in the last step of the warm-up (without one, in the first step).
  const int64_t peak = std::max<int64_t>(c.warmup_steps - 1, 0);
  const int64_t span = std::max<int64_t>(c.steps - 1 - peak, 1);
  const double done = std::min(1.0, static_cast<double>(step - peak) / static_cast<double>(span));
  const double fall = 0.5 * (1.0 + std::cos(c10::pi<double> * done));
  return c.min_lr_ratio + (1.0 - c.min_lr_ratio) * fall;
}

LrSchedule::LrSchedule(torch::optim::Optimizer& optimizer, ScheduleConfig config)
    : optimizer_(&optimizer), config_(std::move(config)) {
  for (const auto& group : optimizer.param_groups()) full_.push_back(group.options().get_lr());
}

void LrSchedule::apply(int64_t step) {
  auto& groups = optimizer_->param_groups();
  TORCH_CHECK(groups.size() == full_.size(), "[optim_offload] the optimizer has ", groups.size(),
              " parameter groups and had ", full_.size(),
              " when the schedule was made; make the schedule after all groups are there");
  const double factor = schedule_factor(config_, step);
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(full_[i] * factor);
}

double LrSchedule::lr() const { return optimizer_->param_groups().front().options().get_lr(); }

}  // namespace optim_offload::train
