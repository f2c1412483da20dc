#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "train/metrics.h"
#include "train/progress.h"

namespace optim_offload::train {

/// Gathers the figures of steps without waiting for the device, and reads them all at once when a
/// report is due.
class StepLog {
 public:
  StepLog(MetricsFile& metrics, Progress& progress, torch::Device device);

  /// Lets the clock and the memory peak start now; time spent outside of training is not counted.
  void start();

  /// Adds step number `step` (from 1). `loss` and `grad_norm` are 0-dim and may be on a device.
  void add(int64_t step, torch::Tensor loss, torch::Tensor grad_norm, double lr, int64_t tokens);

  /// Waits for the device, writes a metrics line for each step since the last flush and one of
  /// their speed, and shows a report. Then start(). Nothing where no step was added. Throws where
  /// a loss is not finite.
  void flush();

 private:
  struct Step {
    int64_t step;
    torch::Tensor loss;
    torch::Tensor grad_norm;
    double lr;
    int64_t tokens;
  };

  MetricsFile* metrics_;
  Progress* progress_;
  torch::Device device_;
  std::vector<Step> steps_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace optim_offload::train
