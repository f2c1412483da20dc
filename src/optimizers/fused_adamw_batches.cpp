#include "optimizers/fused_adamw_batches.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

namespace optim_offload {
namespace {

// The kernel walks all tensors of a parameter by one flat index.
bool walks_alike(const at::Tensor& param, const at::Tensor& other) {
  return other.strides() == param.strides();
}

void check_fits(const at::Tensor& param, const at::Tensor& other, const char* what) {
  TORCH_CHECK(other.scalar_type() == param.scalar_type() && other.device() == param.device() &&
                  other.sizes() == param.sizes(),
              "[optim_offload] FusedAdamW: ", what, " (", other.scalar_type(), " ", other.sizes(),
              " on ", other.device(), ") does not fit its parameter (", param.scalar_type(), " ",
              param.sizes(), " on ", param.device(),
              "); give both the same dtype, shape and device");
}

}  // namespace

FusedAdamWBatches::Batch& FusedAdamWBatches::batch_for(const at::Tensor& param, int64_t step) {
  const c10::Device device = param.device();
  const c10::ScalarType dtype = param.scalar_type();
  const auto matches = [&](const Batch& batch) {
    return batch.step == step && batch.dtype == dtype && batch.device == device;
  };
  // Neighbours nearly always agree.
  if (latest_ < batches_.size() && matches(batches_[latest_])) return batches_[latest_];
  for (latest_ = 0; latest_ < batches_.size(); ++latest_) {
    if (matches(batches_[latest_])) return batches_[latest_];
  }
  Batch& batch = batches_.emplace_back(Batch{device, dtype, step, {}, {}, {}, {}, {}});
  if (batches_.size() == 1) {
    batch.params.reserve(expected_);
    batch.grads.reserve(expected_);
    batch.exp_avgs.reserve(expected_);
    batch.exp_avg_sqs.reserve(expected_);
  }
  return batch;
}

void FusedAdamWBatches::add(const at::Tensor& param, const at::Tensor& grad,
                            const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                            const at::Tensor& max_exp_avg_sq, int64_t step) {
  TORCH_CHECK(grad.layout() == c10::kStrided && param.layout() == c10::kStrided,
              "[optim_offload] FusedAdamW does not take sparse gradients (", grad.layout(),
              " gradient of a ", param.layout(), " parameter of shape ", param.sizes(),
              "); make them dense, or use SGD or Adagrad for this parameter");
  TORCH_CHECK(at::isFloatingType(param.scalar_type()),
              "[optim_offload] FusedAdamW takes real floating point parameters only, not ",
              param.scalar_type(), "; train torch::view_as_real of a complex parameter");
  check_fits(param, grad, "a gradient");
  check_fits(param, exp_avg, "exp_avg");
  check_fits(param, exp_avg_sq, "exp_avg_sq");
  const bool amsgrad = max_exp_avg_sq.defined();
  if (amsgrad) check_fits(param, max_exp_avg_sq, "max_exp_avg_sq");
  if (param.numel() == 0) return;

  Batch& batch = batch_for(param, step);
  const bool dense = param.is_non_overlapping_and_dense();
  if (dense && walks_alike(param, grad) && walks_alike(param, exp_avg) &&
      walks_alike(param, exp_avg_sq) && (!amsgrad || walks_alike(param, max_exp_avg_sq))) {
    batch.params.push_back(param);
    batch.grads.push_back(grad);
    batch.exp_avgs.push_back(exp_avg);
    batch.exp_avg_sqs.push_back(exp_avg_sq);
    if (amsgrad) batch.max_exp_avg_sqs.push_back(max_exp_avg_sq);
    return;
  }
  const at::Tensor& layout = dense ? param : exp_avg;
  TORCH_CHECK(layout.is_non_overlapping_and_dense(),
              "[optim_offload] FusedAdamW: exp_avg of a parameter of shape ", param.sizes(),
              " has strides ", layout.strides(), " with gaps; make the state dense");
  const auto in_layout = [&](const at::Tensor& tensor, bool written) {
    if (walks_alike(layout, tensor)) return tensor;
    at::Tensor copy = at::empty_strided(layout.sizes(), layout.strides(), tensor.options());
    copy.copy_(tensor);
    if (written) staged_.emplace_back(copy, tensor);
    return copy;
  };
  batch.params.push_back(in_layout(param, true));
  batch.grads.push_back(in_layout(grad, false));
  batch.exp_avgs.push_back(in_layout(exp_avg, true));
  batch.exp_avg_sqs.push_back(in_layout(exp_avg_sq, true));
  if (amsgrad) batch.max_exp_avg_sqs.push_back(in_layout(max_exp_avg_sq, true));
}

void FusedAdamWBatches::run(const FusedAdamWScalars& scalars) {
  for (Batch& batch : batches_) {
    // The kernel only reads the count, so that one tensor serves every parameter. A fill on the
    // device: a copy from the host would wait.
    const at::Tensor step = at::full({}, static_cast<double>(batch.step),
                                     at::TensorOptions(batch.device).dtype(at::kFloat));
    const std::vector<at::Tensor> steps(batch.params.size(), step);
    // Past autograd's layer, which would unpack five lists of tensors to record nothing. What it is
    // there for is done here: saved tensors must know that the parameters have changed.
    for (const at::Tensor& param : batch.params) param.unsafeGetTensorImpl()->bump_version();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    at::_fused_adamw_(batch.params, batch.grads, batch.exp_avgs, batch.exp_avg_sqs,
                      batch.max_exp_avg_sqs, steps, scalars.lr, scalars.beta1, scalars.beta2,
                      scalars.weight_decay, scalars.eps, scalars.amsgrad, /*maximize=*/false);
  }
  for (const auto& [copy, tensor] : staged_) tensor.copy_(copy);
  batches_.clear();
  staged_.clear();
  latest_ = 0;
}

}  // namespace optim_offload
