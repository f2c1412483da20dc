#include "optim_offload/optimizers/muon.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include "optimizers/add_group.h"
#include "optimizers/fused_adamw_batches.h"
#include "optimizers/muon_checks.h"
#include "optimizers/newton_schulz.h"

namespace optim_offload {
namespace {

using torch::Tensor;
using torch::optim::OptimizerParamGroup;
using StateMap = ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>>;

MuonOptions& muon_options(OptimizerParamGroup& group, size_t index) {
  auto* options = dynamic_cast<MuonOptions*>(&group.options());
  TORCH_CHECK(options, "[optim_offload] Muon: the options of group ", index,
              " are of another optimizer; give MuonOptions");
  return *options;
}

void check_group(OptimizerParamGroup& group, size_t index) {
  const MuonOptions& options = muon_options(group, index);
  check_muon_options(options);
  if (options.adamw()) return;
  for (const Tensor& param : group.params()) {
    TORCH_CHECK(param.dim() == 2, "[optim_offload] Muon steps matrices only, but group ", index,
                " has a parameter of shape ", param.sizes(),
                "; put it in a group with MuonOptions().adamw(true)");
  }
}

void check_gradient(const Tensor& param, const Tensor& grad) {
  TORCH_CHECK(!param.is_complex(), "[optim_offload] Muon does not take complex parameters (shape ",
              param.sizes(), "); train torch::view_as_real of it");
  TORCH_CHECK(grad.layout() == c10::kStrided,
              "[optim_offload] Muon does not take sparse gradients "
              "(parameter of shape ",
              param.sizes(), "); make them dense");
}

MuonParamState& state_of(StateMap& states, const Tensor& param) {
  auto& place = states[param.unsafeGetTensorImpl()];
  if (!place) place = std::make_unique<MuonParamState>();
  return static_cast<MuonParamState&>(*place);
}

void step_matrices(const OptimizerParamGroup& group, const MuonOptions& options, StateMap& states) {
  for (const Tensor& param : group.params()) {
    const Tensor& grad = param.grad();
    if (!grad.defined()) continue;
    check_gradient(param, grad);
    MuonParamState& state = state_of(states, param);
    if (!state.momentum_buffer().defined()) {
      state.momentum_buffer(at::zeros_like(grad, at::MemoryFormat::Preserve));
    }
    Tensor& buffer = state.momentum_buffer();
    buffer.lerp_(grad, 1 - options.momentum());
    const Tensor update =
        orthogonalize(options.nesterov() ? grad.lerp(buffer, options.momentum()) : buffer,
                      options.ns_coefficients(), options.ns_steps(), options.eps());
    // As a tensor: mul_ of a scalar rounds it to the parameter's dtype first, which in bfloat16
    // would make most decays 1. Python passes a tensor too.
    param.mul_(at::native::wrapped_scalar_tensor(1 - options.lr() * options.weight_decay()));
    param.add_(update, -adjusted_lr(options.lr(), options.adjust_lr_fn(), param.sizes()));
  }
}

void step_adamw(const OptimizerParamGroup& group, const MuonOptions& options, StateMap& states,
                int64_t step) {
  FusedAdamWBatches batches(group.params().size());
  const Tensor none;
  for (const Tensor& param : group.params()) {
    const Tensor& grad = param.grad();
    if (!grad.defined()) continue;
    check_gradient(param, grad);
    MuonParamState& state = state_of(states, param);
    if (!state.exp_avg().defined()) {
      state.exp_avg(at::zeros_like(param, at::MemoryFormat::Preserve));
      state.exp_avg_sq(at::zeros_like(param, at::MemoryFormat::Preserve));
    }
    batches.add(param, grad, state.exp_avg(), state.exp_avg_sq(), none, step);
  }
  const auto [beta1, beta2] = options.adamw_betas();
  batches.run({options.lr(), beta1, beta2, options.adamw_eps(), options.weight_decay(), false});
}

}  // namespace

Muon::Muon(const std::vector<OptimizerParamGroup>& param_groups, MuonOptions defaults)
    : Optimizer(param_groups, std::make_unique<MuonOptions>(defaults)) {
  keep_group_options(*this, param_groups);
  check_muon_options(defaults);
  for (size_t i = 0; i < param_groups_.size(); ++i) check_group(param_groups_[i], i);
}

Muon::Muon(std::vector<Tensor> params, MuonOptions defaults)
    : Muon(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
           std::move(defaults)) {}

void Muon::add_param_group(const OptimizerParamGroup& param_group) {
  OptimizerParamGroup checked(param_group);
  if (!checked.has_options()) checked.set_options(defaults_->clone());
  check_group(checked, param_groups_.size());
  add_group_keeping_options(*this, checked);
}

Tensor Muon::step(LossClosure closure) {
  const at::NoGradGuard no_grad;
  Tensor loss;
  if (closure) {
    const at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    MuonOptions& options = muon_options(param_groups_[i], i);
    const int64_t step = options.step() + 1;
    if (options.adamw()) {
      step_adamw(param_groups_[i], options, state_, step);
    } else {
      step_matrices(param_groups_[i], options, state_);
    }
    // Groups without gradients count too: the counter is of calls, not of parameters.
    options.step(step);
  }
  return loss;
}

void Muon::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<MuonParamState, MuonOptions>(archive, *this);
}

void Muon::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<MuonParamState, MuonOptions>(archive, *this);
}

}  // namespace optim_offload
