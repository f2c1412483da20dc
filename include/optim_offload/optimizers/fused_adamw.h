#pragma once

#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "optim_offload/export.h"

namespace optim_offload {

/// AdamW on LibTorch's fused kernel: one launch for many tensors instead of a dozen for each.
///
/// Options and state are those of `torch::optim::AdamW`, the classes themselves, so that archives
/// interchange with it in both directions, `step` included. Results agree with it to rounding, not
/// bit for bit: the kernel orders its operations otherwise.
///
/// Per group, tensors of one device, dtype and step count go into one call of the kernel. CPU and
/// CUDA; float, double, bfloat16 and half. Work is queued on the current stream, and the host never
/// waits for the device.
///
/// Any layout of parameter and gradient is taken; where the two differ, or the parameter is not
/// dense, a temporary copy of that one tensor is made. Sparse gradients, complex parameters and
/// gradients of another dtype than their parameter's are errors, which step() reports before it
/// changes anything of that group.
class OPTIM_OFFLOAD_EXPORT FusedAdamW : public torch::optim::Optimizer {
 public:
  /// Throws `c10::Error` where a group's options are out of range, or are no AdamWOptions.
  explicit FusedAdamW(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                      torch::optim::AdamWOptions defaults = {});
  explicit FusedAdamW(std::vector<torch::Tensor> params,
                      torch::optim::AdamWOptions defaults = {});  ///< One group.

  torch::Tensor step(LossClosure closure = nullptr) override;  ///< Returns the closure's loss.
  void save(torch::serialize::OutputArchive& archive) const override;  ///< As AdamW's.
  void load(torch::serialize::InputArchive& archive) override;         ///< As AdamW's.
};

}  // namespace optim_offload
