#include "optim_offload/optimizers/fused_adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include "optimizers/fused_adamw_batches.h"

namespace optim_offload {
namespace {

using torch::optim::AdamWOptions;
using torch::optim::AdamWParamState;
using torch::optim::OptimizerParamGroup;

void check_options(const AdamWOptions& options) {
  const auto [beta1, beta2] = options.betas();
  TORCH_CHECK(options.lr() >= 0, "[optim_offload] FusedAdamW: lr = ", options.lr(),
              " must be at least 0");
  TORCH_CHECK(options.eps() >= 0, "[optim_offload] FusedAdamW: eps = ", options.eps(),
              " must be at least 0");
  TORCH_CHECK(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1,
              "[optim_offload] FusedAdamW: betas = (", beta1, ", ", beta2,
              ") must be at least 0 and below 1");
  TORCH_CHECK(options.weight_decay() >= 0,
              "[optim_offload] FusedAdamW: weight_decay = ", options.weight_decay(),
              " must be at least 0");
}

const AdamWOptions& adamw_options(const OptimizerParamGroup& group, size_t index) {
  const auto* options = dynamic_cast<const AdamWOptions*>(&group.options());
  TORCH_CHECK(options, "[optim_offload] FusedAdamW: the options of group ", index,
              " are of another optimizer; give torch::optim::AdamWOptions");
  return *options;
}

AdamWParamState& make_state(const torch::Tensor& param, bool amsgrad,
                            std::unique_ptr<torch::optim::OptimizerParamState>& place) {
  auto state = std::make_unique<AdamWParamState>();
  state->exp_avg(at::zeros_like(param, at::MemoryFormat::Preserve));
  state->exp_avg_sq(at::zeros_like(param, at::MemoryFormat::Preserve));
  if (amsgrad) state->max_exp_avg_sq(at::zeros_like(param, at::MemoryFormat::Preserve));
  place = std::move(state);
  return static_cast<AdamWParamState&>(*place);
}

}  // namespace

FusedAdamW::FusedAdamW(const std::vector<OptimizerParamGroup>& param_groups, AdamWOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdamWOptions>(defaults)) {
  check_options(defaults);
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    check_options(adamw_options(param_groups_[i], i));
  }
}

FusedAdamW::FusedAdamW(std::vector<torch::Tensor> params, AdamWOptions defaults)
    : FusedAdamW(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
                 std::move(defaults)) {}

torch::Tensor FusedAdamW::step(LossClosure closure) {
  const at::NoGradGuard no_grad;
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  std::vector<AdamWParamState*> stepped;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const OptimizerParamGroup& group = param_groups_[i];
    if (group.params().empty()) continue;
    const AdamWOptions& options = adamw_options(group, i);
    const bool amsgrad = options.amsgrad();
    const torch::Tensor none;
    FusedAdamWBatches batches(group.params().size());
    stepped.clear();
    stepped.reserve(group.params().size());
    for (const torch::Tensor& param : group.params()) {
      const torch::Tensor& grad = param.grad();
      if (!grad.defined()) continue;
      auto& place = state_[param.unsafeGetTensorImpl()];
      AdamWParamState& state =
          place ? static_cast<AdamWParamState&>(*place) : make_state(param, amsgrad, place);
      TORCH_CHECK(!amsgrad || state.max_exp_avg_sq().defined(),
                  "[optim_offload] FusedAdamW: amsgrad is on in group ", i,
                  " but a parameter's state was made without it; set it before the first step");
      batches.add(param, grad, state.exp_avg(), state.exp_avg_sq(),
                  amsgrad ? state.max_exp_avg_sq() : none, state.step() + 1);
      stepped.push_back(&state);
    }
    const auto& [beta1, beta2] = options.betas();
    batches.run({options.lr(), beta1, beta2, options.eps(), options.weight_decay(), amsgrad});
    // Only now: add() may throw, and then no parameter of the group has moved.
    for (AdamWParamState* state : stepped) state->step(state->step() + 1);
  }
  return loss;
}

void FusedAdamW::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<AdamWParamState, AdamWOptions>(archive, *this);
}

void FusedAdamW::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<AdamWParamState, AdamWOptions>(archive, *this);
}

}  // namespace optim_offload
