#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/traits.h"
#include "state/host_state.h"
#include "state/registry.h"
#include "step/step_plan.h"

namespace optim_offload {

/// What CPUOffloadOptimizer holds. Between calls groups and state are the wrapper's, not the
/// base's.
class CPUOffloadOptimizer::Impl {
 public:
  Impl(std::unique_ptr<torch::optim::Optimizer> base_optimizer,
       const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
       OffloadOptions offload_options);

  /// Where a call of step() has got.
  enum class Call {
    None,     ///< Nowhere: no step is being done.
    Closure,  ///< A closure may run, with all state at home.
    Lent,     ///< A closure may run, with state on the device.
  };

  /// Holds `call` for the length of a step.
  class Stepping {
   public:
    explicit Stepping(Impl& impl) : impl_(impl) { impl_.call = Call::Closure; }
    ~Stepping() { impl_.call = Call::None; }
    Stepping(const Stepping&) = delete;
    Stepping& operator=(const Stepping&) = delete;

   private:
    Impl& impl_;
  };

  /// Throws within a step, as in its closure, and where the base has groups of its own. `name`: of
  /// the function that was called.
  void check_between_steps(const char* name) const;

  /// Throws where state is on the device.
  void check_at_home(const char* name) const;

  /// Brings what is in `states` home; from an archive if one was loaded since the last time.
  void settle(state::StateMap& states);

  /// Steps the base, which holds groups and state, as the options say. `begun`: when the step
  /// began.
  torch::Tensor run(LossClosure closure, std::chrono::steady_clock::time_point begun);

  /// Moves all state from the host to its parameters' devices.
  void leave_home();

  /// Reads `archive` into a copy of the groups, so that one that does not fit changes nothing.
  void rehearse_load(torch::serialize::InputArchive& archive,
                     std::vector<torch::optim::OptimizerParamGroup> groups);

  std::unique_ptr<torch::optim::Optimizer> base;
  OffloadOptions options;
  OptimizerTraits traits;
  state::Registry registry;
  state::HostState host;
  step::StepPlan plan;
  OffloadStats stats;
  Call call = Call::None;
  bool loaded = false;  ///< State of an archive waits for its home.
};

}  // namespace optim_offload
