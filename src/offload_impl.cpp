#include "offload_impl.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include "error.h"
#include "state/weights_version.h"
#include "step/modes.h"

namespace optim_offload {
namespace {

/// Ends what the arena was told to expect, also after a throw.
struct Trim {
  memory::Arena& arena;
  ~Trim() { arena.trim(); }
};

/// Lets go of what the registry has noted of new state, likewise.
struct EndChecks {
  state::Registry& registry;
  ~EndChecks() { registry.end_checks(); }
};

}  // namespace

CPUOffloadOptimizer::Impl::Impl(
    std::unique_ptr<torch::optim::Optimizer> base_optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
    OffloadOptions offload_options)
    : base(std::move(base_optimizer)),
      options(std::move(offload_options)),
      traits(optimizer_traits(*base)),
      registry(named_parameters, options.layer_pattern()),
      host(options.pin_memory()),
      plan(options, traits) {}

void CPUOffloadOptimizer::Impl::check_between_steps(const char* name) const {
  OFFLOAD_CHECK(call == Call::None, name,
                " was called within step(), as by its closure; call it between steps");
  OFFLOAD_CHECK(base->param_groups().empty(), "the base has parameter groups of its own (",
                base->param_groups().size(),
                "), which would not be stepped; give them to the wrapper's add_param_group()");
}

void CPUOffloadOptimizer::Impl::check_at_home(const char* name) const {
  OFFLOAD_CHECK(call != Call::Lent, name,
                " was called by the closure of an all-at-once step, while state is on the device; "
                "call it between steps");
}

void CPUOffloadOptimizer::Impl::settle(state::StateMap& states) {
  const EndChecks end{registry};
  host.settle(
      registry, states, [this](c10::Device device) { return plan.lane(device).link.get(); },
      loaded);
  loaded = false;
}

torch::Tensor CPUOffloadOptimizer::Impl::run(LossClosure closure,
                                             std::chrono::steady_clock::time_point begun) {
  step::StepContext context{.base = *base,
                            .registry = registry,
                            .host = host,
                            .traits = traits,
                            .closure = std::move(closure),
                            .plan = plan};
  if (options.chunked() && context.closure != nullptr) {
    context.closure = [&context, loss = std::move(context.closure)] {
      OFFLOAD_CHECK(
          ++context.closure_calls == 1,
          "the optimizer evaluates the closure more than once in a step (", context.closure_calls,
          " times), which chunked modes cannot do; set chunked(false): all at once works");
      OFFLOAD_CHECK(
          state::weights_version(context.base.param_groups()) == context.weights_version,
          "the optimizer changes weights before it evaluates the closure, which chunked modes have "
          "evaluated by then; set chunked(false): all at once works");
      return loss();
    };
  }
  const Trim trim{host.arena()};
  const EndChecks end{registry};
  context.clock.begun = context.clock.queued = begun;
  if (plan.piece_count() == 0) {
    context.result = base->step(context.closure);
  } else if (!options.chunked()) {
    step::step_all_at_once(context, plan);
  } else if (options.stream()) {
    step::step_streamed(context, plan, static_cast<size_t>(options.slots()));
  } else {
    step::step_sequential(context, plan);
  }

  const std::chrono::duration<double> total = std::chrono::steady_clock::now() - begun;
  ++stats.steps;
  stats.chunks = static_cast<int64_t>(registry.chunks().size());
  stats.pieces = static_cast<int64_t>(plan.piece_count());
  stats.tiles = static_cast<int64_t>(plan.tile_count());
  stats.h2d_bytes = static_cast<int64_t>(context.h2d_bytes);
  stats.d2h_bytes = static_cast<int64_t>(context.d2h_bytes);
  stats.seconds = total.count();
  stats.queue_seconds = context.clock.queue_seconds();
  stats.host_seconds = context.clock.host_seconds();
  stats.peak_slot_bytes = static_cast<int64_t>(context.slot_bytes + context.peak_held_bytes);
  stats.largest_piece_bytes = static_cast<int64_t>(plan.largest_piece_bytes());
  stats.oversize_piece = plan.oversize_piece();
  return context.result;
}

void CPUOffloadOptimizer::Impl::leave_home() {
  const at::NoGradGuard no_grad;
  for (state::Member& member : registry.members()) {
    for (state::StateTensor& tensor : member.record.moved) {
      const at::Tensor& home = tensor.home;
      at::Tensor away = at::empty_strided(home.sizes(), home.strides(),
                                          home.options().device(member.param.device()));
      away.copy_(home);
      tensor.handle.set_data(away);
    }
  }
}

}  // namespace optim_offload
