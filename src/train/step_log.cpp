#include "train/step_log.h"

#include <cmath>

#include <c10/util/Exception.h>

#include "memory/device_memory.h"

namespace optim_offload::train {

StepLog::StepLog(MetricsFile& metrics, Progress& progress, torch::Device device)
    : metrics_(&metrics), progress_(&progress), device_(device) {
  start();
}

void StepLog::start() {
  reset_peak_device_memory(device_);
  since_ = std::chrono::steady_clock::now();
}

void StepLog::add(int64_t step, torch::Tensor loss, torch::Tensor grad_norm, double lr,
                  int64_t tokens) {
  steps_.push_back({step, std::move(loss), std::move(grad_norm), lr, tokens});
}

void StepLog::flush() {
  if (steps_.empty()) return;
  std::vector<torch::Tensor> values;
  for (const auto& step : steps_) {
    values.push_back(step.loss);
    values.push_back(step.grad_norm);
  }
  // The copy waits for all steps; the time is taken after it.
  const auto read = at::stack(values).cpu();
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const auto memory = device_memory(device_);

  Progress::Report report;
  int64_t tokens = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& step = steps_[i];
    const float loss = read.data_ptr<float>()[2 * i];
    metrics_->write({{"event", "step"},
                     {"step", step.step},
                     {"loss", loss},
                     {"grad_norm", read.data_ptr<float>()[2 * i + 1]},
                     {"lr", step.lr}});
    TORCH_CHECK(std::isfinite(loss), "[optim_offload] the loss of step ", step.step, " is ", loss,
                "; lower trainer.optim.lr, lengthen trainer.warmup_steps or clip gradients ",
                "(trainer.grad_clip), and resume from a checkpoint before it");
    report.loss += loss / static_cast<double>(steps_.size());
    tokens += step.tokens;
  }
  const auto& last = steps_.back();
  report.tokens_per_second = static_cast<double>(tokens) / seconds;
  report.step_ms = 1000.0 * seconds / static_cast<double>(steps_.size());
  report.lr = last.lr;
  report.peak_device_bytes = memory.peak_allocated;
  metrics_->write({{"event", "speed"},
                   {"step", last.step},
                   {"tokens_per_s", report.tokens_per_second},
                   {"step_ms", report.step_ms},
                   {"peak_allocated_bytes", memory.peak_allocated},
                   {"peak_reserved_bytes", memory.peak_reserved}});
  progress_->report(last.step, report);
  steps_.clear();
  start();
}

}  // namespace optim_offload::train
