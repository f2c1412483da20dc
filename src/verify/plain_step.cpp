#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Type.h>

#include "error.h"
#include "state/loan.h"
#include "state/weights_version.h"
#include "verify/copies.h"
#include "verify/outcome.h"

namespace optim_offload::verify {
namespace {

/// Puts the random generators of the CPU and of some devices back at the end of a scope.
class RandomState {
 public:
  explicit RandomState(const state::Registry& registry) {
    keep(at::kCPU);
    std::set<std::string> kept;
    for (const state::Member& member : registry.members()) {
      const c10::Device device = member.param.device();
      if (!device.is_cpu() && kept.insert(device.str()).second) keep(device);
    }
  }
  ~RandomState() {
    for (auto& [generator, state] : kept_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;

 private:
  void keep(c10::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    kept_.emplace_back(generator, generator.get_state());
  }
  std::vector<std::pair<at::Generator, at::Tensor>> kept_;
};

/// A tensor of its own with the same sizes, strides and values, on the host.
at::Tensor on_host(const at::Tensor& tensor, Copies& copies) {
  const at::NoGradGuard no_grad;
  if (tensor.is_cpu()) return tensor.detach();  // its memory is a copy's
  if (tensor.layout() != at::kStrided) return tensor.detach().cpu();
  if (!tensor.is_non_overlapping_and_dense()) return copies.of(tensor.detach(), at::kCPU);
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU))
      .copy_(tensor.detach());
}

Values on_host(Values values, Copies& copies) {
  for (state::WrittenValue& v : values) {
    if (v.value.isTensor() && v.value.toTensor().defined())
      v.value = on_host(v.value.toTensor(), copies);
  }
  return values;
}

/// A state object whose tensors have memory of their own while `detour` lasts: where it shares them
/// with `object`, they are led there for both. Those that rest on the host go to the device.
std::unique_ptr<torch::optim::OptimizerParamState> copy_state(
    const torch::optim::OptimizerParamState& object, const state::Member* member, Copies& copies,
    Detour& detour) {
  auto copy = object.clone();
  const auto found = state::find_state_tensors(*copy);
  for (const state::WrittenValue& v : state::written_values(*copy)) {
    if (!v.value.isTensor() || !v.value.toTensor().defined()) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& f) {
      return f.tensor.is_same(v.value.toTensor());
    });
    // A single number that no tensor of the state holds was made for the archive.
    OFFLOAD_CHECK(
        known || v.value.toTensor().numel() <= 1,
        "verify cannot copy a state whose serialize() writes a copy of its tensor (class ",
        c10::demangle(typeid(object).name()), ", ", v.name,
        "); write the tensor itself, or set verify(0)");
  }
  for (const state::FoundTensor& f : found) {
    c10::Device device = f.tensor.device();
    if (member != nullptr) {
      const auto& moved = member->record.moved;
      const bool moves = std::any_of(moved.begin(), moved.end(), [&](const auto& tensor) {
        return tensor.handle.is_same(f.tensor) || tensor.name == f.name;
      });
      if (moves) device = member->param.device();
    }
    detour.point(f.tensor, copies.of(f.tensor, device));
  }
  return copy;
}

}  // namespace

Outcome plain_step(torch::optim::Optimizer& base, const state::Registry& registry,
                   const Groups& groups, const state::StateMap& states,
                   const torch::optim::Optimizer::LossClosure& closure) {
  const RandomState random(registry);
  const auto& members = registry.members();
  Copies copies;
  Detour detour;
  Groups own_groups = groups;  // with copies of the options
  for (auto& group : own_groups) group.params().clear();
  state::StateMap own_states;

  std::unordered_map<const void*, const state::Member*> member_of;
  std::vector<at::Tensor> params;
  for (const state::Member& member : members) {
    member_of.emplace(member.key(), &member);
    at::Tensor param = copies.of(member.param, member.param.device());
    param.set_requires_grad(member.param.requires_grad());
    const at::Tensor& grad = member.param.grad();
    if (grad.defined()) param.mutable_grad() = copies.of(grad, grad.device());
    own_groups[member.group].params().push_back(param);
    params.push_back(std::move(param));
  }
  for (const auto& [key, object] : states) {
    if (object == nullptr) continue;
    const auto member = member_of.find(key);
    const bool known = member != member_of.end();
    void* own_key =
        known ? params[static_cast<size_t>(member->second - members.data())].unsafeGetTensorImpl()
              : key;
    own_states[own_key] = copy_state(*object, known ? member->second : nullptr, copies, detour);
  }

  torch::optim::Optimizer::LossClosure checked;
  if (closure != nullptr) {
    checked = [&, before = state::weights_version(own_groups), first = true]() mutable {
      const bool changed = state::weights_version(base.param_groups()) != before;
      OFFLOAD_CHECK(!std::exchange(first, false) || !changed,
                    "the optimizer changes weights before it evaluates the closure, which verify "
                    "has evaluated by then; set verify(0)");
      return closure();
    };
  }
  Outcome outcome;
  try {
    const state::Loan loan(base, own_groups, own_states);
    outcome.loss = base.step(checked);
  } catch (c10::Error& error) {
    error.add_context(
        "[optim_offload] verify: the plain optimizer's step on copies failed; nothing has changed");
    throw;
  }
  Copies on_cpu;
  for (size_t i = 0; i < members.size(); ++i) {
    outcome.params.push_back(on_host(params[i], on_cpu));
    const at::Tensor& grad = params[i].grad();
    outcome.grads.push_back(grad.defined() ? on_host(grad, on_cpu) : at::Tensor());
    const auto state = own_states.find(params[i].unsafeGetTensorImpl());
    const bool has_state = state != own_states.end() && state->second != nullptr;
    outcome.states.push_back(
        has_state ? std::optional(on_host(state::written_values(*state->second), on_cpu))
                  : std::nullopt);
  }
  for (const auto& group : own_groups) {
    outcome.options.push_back(group.has_options() ? state::written_values(group.options())
                                                  : Values{});
  }
  if (outcome.loss.defined()) outcome.loss = on_host(outcome.loss, on_cpu);
  return outcome;
}

}  // namespace optim_offload::verify
