#include "support/blend.h"

#include <ATen/core/grad_mode.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include "optim_offload/traits.h"

namespace optim_offload::testing {

void BlendOptions::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("lr", c10::IValue(lr_));
  archive.write("mix", c10::IValue(mix_));
  archive.write("decay", c10::IValue(decay_));
  archive.write("group_steps", c10::IValue(group_steps_));
}

void BlendOptions::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue value;
  archive.read("lr", value);
  lr_ = value.toDouble();
  archive.read("mix", value);
  mix_ = value.toDouble();
  archive.read("decay", value);
  decay_ = value.toDouble();
  archive.read("group_steps", value);
  group_steps_ = value.toInt();
}

void BlendParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("fast", c10::IValue(fast_));
  archive.write("slow", c10::IValue(slow_));
  archive.write("count", c10::IValue(count_));
  archive.write("steps", c10::IValue(steps_));
}

void BlendParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue value;
  archive.read("fast", value);
  fast_ = value.toTensor();
  archive.read("slow", value);
  slow_ = value.toTensor();
  archive.read("count", value);
  count_ = value.toTensor();
  archive.read("steps", value);
  steps_ = value.toInt();
}

torch::Tensor Blend::step(LossClosure closure) {
  torch::NoGradGuard no_grad;
  torch::Tensor loss;
  if (closure) {
    at::AutoGradMode grad_mode(true);
    loss = closure();
  }
  begin_step();
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const BlendOptions&>(group.options());
    for (auto& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      begin_parameter(parameter);
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) state = make_state(parameter);
      update(parameter, options, static_cast<BlendParamState&>(*state));
    }
  }
  return loss;
}

void Blend::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<BlendParamState, BlendOptions>(archive, *this);
}

void Blend::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<BlendParamState, BlendOptions>(archive, *this);
}

std::unique_ptr<BlendParamState> Blend::make_state(const torch::Tensor& parameter) {
  auto state = std::make_unique<BlendParamState>();
  state->fast(torch::zeros_like(parameter));
  state->slow(torch::zeros_like(parameter));
  state->count(torch::zeros({}, parameter.options().dtype(torch::kFloat32)));
  return state;
}

void Blend::update(torch::Tensor parameter, const BlendOptions& options, BlendParamState& state) {
  const auto gradient = parameter.grad();
  state.steps(state.steps() + 1);
  state.count().add_(1);
  state.fast().mul_(options.decay()).add_(gradient.mul(1 - options.decay()));
  state.slow().mul_(0.99).add_(gradient.mul(gradient).mul_(0.01));
  auto direction = state.fast().mul(options.mix()).add_(gradient.mul(1 - options.mix()));
  // The 0-dim counter takes part in the values, so that a wrong count shows in the bits.
  auto scale = state.slow().sqrt().add_(state.count().reciprocal()).add_(1.0 / state.steps());
  parameter.sub_(direction.div_(scale).mul_(options.lr()));
}

void NormBlend::update(torch::Tensor parameter, const BlendOptions& options,
                       BlendParamState& state) {
  Blend::update(parameter, options, state);
  parameter.sub_(state.fast().mul(options.lr()).div_(state.fast().norm().add_(1)));
}

void ReplacingBlend::update(torch::Tensor parameter, const BlendOptions& options,
                            BlendParamState& state) {
  state.fast(state.fast().clone());
  state.slow(state.slow().clone());
  state.count(state.count().clone());
  Blend::update(parameter, options, state);
}

void GroupCounterBlend::begin_step() {
  for (auto& group : param_groups_) {
    auto& options = static_cast<BlendOptions&>(group.options());
    options.group_steps(options.group_steps() + 1);
  }
}

void GroupCounterBlend::update(torch::Tensor parameter, const BlendOptions& options,
                               BlendParamState& state) {
  Blend::update(parameter, options, state);
  parameter.mul_(1 - options.lr() / static_cast<double>(options.group_steps() + 1));
}

void ParameterCountingBlend::begin_step() {
  for (auto& group : param_groups_) {
    auto& options = static_cast<BlendOptions&>(group.options());
    options.group_steps(options.group_steps() + static_cast<int64_t>(group.params().size()));
  }
}

void FaultyBlend::begin_parameter(const torch::Tensor&) {
  if (fault_at > 0 && --fault_at == 0) TORCH_CHECK(false, "planned fault");
}

void register_blend_traits() {
  set_optimizer_traits<ElementwiseBlend>(
      {.element_wise = true, .couples_parameters = false, .fixed_state = true});
}

}  // namespace optim_offload::testing
