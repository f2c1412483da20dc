#include "optim_offload/cpu_offload_optimizer.h"

#include <chrono>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "error.h"
#include "offload_impl.h"
#include "optimizers/add_group.h"
#include "option_limits.h"
#include "state/loan.h"
#include "step/modes.h"
#include "verify/outcome.h"

namespace optim_offload {
namespace {

void check(const torch::optim::Optimizer* base, const OffloadOptions& options) {
  OFFLOAD_CHECK(base != nullptr, "the base optimizer is null; pass a std::unique_ptr to one");
  OFFLOAD_CHECK(
      dynamic_cast<const CPUOffloadOptimizer*>(base) == nullptr,
      "the base is a CPUOffloadOptimizer already; pass the optimizer itself, or release() it");
  OFFLOAD_CHECK(options.chunked() || !options.stream(),
                "stream needs chunked (stream = true, chunked = false); set chunked(true) too");
  OFFLOAD_CHECK(options.piece_bytes() >= kSmallestPiece, "piece_bytes is too small (",
                options.piece_bytes(), "); give at least ", kSmallestPiece, ", better some MiB");
  OFFLOAD_CHECK(options.slots() >= kFewestSlots, "slots are too few (", options.slots(),
                "); give at least ", kFewestSlots, ", better 3");
  OFFLOAD_CHECK(options.slots() <= kMostSlots, "slots are too many (", options.slots(),
                "); give at most ", kMostSlots, ", better 3");
  OFFLOAD_CHECK(options.verify() >= 0, "verify is negative (", options.verify(),
                "); give the number of steps to compare, or 0");
  OFFLOAD_CHECK(!options.chunked() || !optimizer_traits(*base).couples_parameters,
                "this optimizer couples its parameters, so it cannot be stepped in pieces (",
                c10::demangle(typeid(*base).name()),
                ", chunked = true); set chunked(false): all at once works");
}

}  // namespace

CPUOffloadOptimizer::CPUOffloadOptimizer(
    std::unique_ptr<torch::optim::Optimizer> base,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters, OffloadOptions options)
    : Optimizer(std::vector<torch::optim::OptimizerParamGroup>{},
                (check(base.get(), options), base->defaults().clone())),
      impl_(std::make_unique<Impl>(std::move(base), named_parameters, std::move(options))) {
  state::check_archive_access();
  impl_->registry.refresh(impl_->base->param_groups());
  param_groups_.swap(impl_->base->param_groups());
  state_.swap(impl_->base->state());
  impl_->settle(state_);
}

CPUOffloadOptimizer::~CPUOffloadOptimizer() = default;

CPUOffloadOptimizer::Impl& CPUOffloadOptimizer::impl() const {
  OFFLOAD_CHECK(impl_ != nullptr,
                "the base was released from this CPUOffloadOptimizer; use the released optimizer");
  return *impl_;
}

namespace {

/// A closure for a base whose step is verified: gives the loss of the user's, once.
torch::optim::Optimizer::LossClosure once(const torch::Tensor& loss) {
  return [loss, calls = 0]() mutable {
    OFFLOAD_CHECK(++calls == 1, "the optimizer evaluates the closure more than once in a step (",
                  calls, " times), which verify cannot follow; set verify(0)");
    return loss;
  };
}

}  // namespace

torch::Tensor CPUOffloadOptimizer::step(LossClosure closure) {
  Impl& self = impl();
  self.check_between_steps("step()");
  const Impl::Stepping stepping(self);
  const bool verifies = self.stats.steps < self.options.verify();
  const bool closure_first = self.options.chunked() || verifies;
  LossClosure base_closure = closure;
  torch::Tensor loss;
  if (closure_first && closure != nullptr) {
    const at::AutoGradMode grad(true);
    loss = closure();
    base_closure = [loss] { return loss; };
  }
  auto begun = std::chrono::steady_clock::now();
  self.registry.refresh(param_groups_);
  self.settle(state_);
  std::optional<verify::Outcome> expected;
  if (verifies) {
    expected = verify::plain_step(*self.base, self.registry, param_groups_, state_,
                                  closure == nullptr ? nullptr : once(loss));
    begun = std::chrono::steady_clock::now();
  }
  self.plan.update(self.registry, param_groups_, closure != nullptr && !closure_first);

  torch::Tensor result;
  {
    state::Loan loan(*self.base, param_groups_, state_);
    if (!closure_first && closure != nullptr) {
      self.call = Impl::Call::Lent;
      base_closure = [&loan, closure] { return loan.call(closure); };
    }
    result = self.run(std::move(base_closure), begun);
  }
  if (expected) {
    verify::check_same(*expected, self.registry, param_groups_, state_, result, self.stats.steps);
  }
  return result;
}

void CPUOffloadOptimizer::add_param_group(const torch::optim::OptimizerParamGroup& param_group) {
  impl();
  add_group_keeping_options(*this, param_group);
  try {
    impl_->registry.refresh(param_groups_);
  } catch (...) {
    param_groups_.pop_back();
    throw;
  }
}

void CPUOffloadOptimizer::synchronize() const {
  using transfer::Lane;
  for (const auto& lane : impl().plan.lanes()) {
    if (lane->link == nullptr) continue;
    for (const Lane queue : {Lane::H2D, Lane::D2H, Lane::Compute}) {
      lane->link->synchronize(queue, transfer::WaitPoint::Synchronized);
    }
  }
}

std::unique_ptr<torch::optim::Optimizer> CPUOffloadOptimizer::release() {
  Impl& self = impl();
  self.check_between_steps("release()");
  self.registry.refresh(param_groups_);
  self.settle(state_);
  self.leave_home();
  param_groups_.swap(self.base->param_groups());
  state_.swap(self.base->state());
  auto base = std::move(self.base);
  impl_.reset();
  return base;
}

torch::optim::Optimizer& CPUOffloadOptimizer::base_optimizer() { return *impl().base; }
const torch::optim::Optimizer& CPUOffloadOptimizer::base_optimizer() const { return *impl().base; }
const OffloadOptions& CPUOffloadOptimizer::options() const { return impl().options; }

OffloadStats CPUOffloadOptimizer::stats() const {
  OffloadStats stats = impl().stats;
  const memory::Arena& arena = impl_->host.arena();
  stats.state_bytes = static_cast<int64_t>(impl_->registry.state_bytes());
  stats.pinned_bytes = static_cast<int64_t>(arena.locked_bytes());
  stats.pageable_bytes = static_cast<int64_t>(arena.pageable_bytes());
  return stats;
}

}  // namespace optim_offload
