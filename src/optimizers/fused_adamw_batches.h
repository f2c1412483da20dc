#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace optim_offload {

/// The hyper-parameters that all tensors of one call share.
struct FusedAdamWScalars {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool amsgrad;
};

/// Collects tensors for `at::_fused_adamw_` and steps them in one call for each device, dtype and
/// step count. add() costs well under a microsecond; nothing waits for a device.
class FusedAdamWBatches {
 public:
  /// `expected`: tensors that will be added, for room.
  explicit FusedAdamWBatches(size_t expected) : expected_(expected) {}

  /// Adds one parameter. `step` counts from 1 and includes the step being made. `max_exp_avg_sq` is
  /// defined exactly when amsgrad is on. Throws, with the batches as they were, on sparse,
  /// complex or integer parameters and on tensors that do not fit each other.
  void add(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
           const at::Tensor& exp_avg_sq, const at::Tensor& max_exp_avg_sq, int64_t step);

  /// Steps all that was added, on the current streams.
  void run(const FusedAdamWScalars& scalars);

 private:
  struct Batch {
    c10::Device device;
    c10::ScalarType dtype;
    int64_t step;
    std::vector<at::Tensor> params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs;
  };

  Batch& batch_for(const at::Tensor& param, int64_t step);

  size_t expected_;
  std::vector<Batch> batches_;
  size_t latest_ = 0;
  // Copies in the kernel's layout, and where their results belong.
  std::vector<std::pair<at::Tensor, at::Tensor>> staged_;
};

}  // namespace optim_offload
