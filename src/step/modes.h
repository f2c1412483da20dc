#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "step/piece_step.h"
#include "step/step_context.h"
#include "step/step_plan.h"

namespace optim_offload::step {

/// All state to the device, one call of the base with all groups and the user's closure, all state
/// back. Copies on the compute lane.
void step_all_at_once(StepContext& context, StepPlan& plan);

/// Piece by piece in one slot, all on the compute lane: no stream and no event is made.
void step_sequential(StepContext& context, StepPlan& plan);

/// Piece by piece with the copies of other pieces in both directions at the same time.
///
/// A device whose state rests on it (the CPU) is stepped in order.
void step_streamed(StepContext& context, StepPlan& plan, size_t slots);

/// Device memory of a lane's slots for the length of a scope.
class SlotLease {
 public:
  SlotLease(StepContext& context, DeviceLane& lane) : lane_(lane) {
    if (!lane.uses_slots()) return;
    lane.slots.acquire();
    report("earlier work in a slot's memory");
    context.slot_bytes += lane.slots.total_bytes();
  }
  ~SlotLease() {
    if (!lane_.uses_slots()) return;
    report("later work in a slot's memory");
    lane_.slots.release();
  }
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;

 private:
  /// The allocator knows of the compute lane alone: it may have taken the memory from work there
  /// that still goes on, and will give it to work there at once.
  void report(const char* what) {
    for (size_t slot = 0; slot < lane_.slots.count(); ++slot) {
      lane_.link->uses(transfer::Lane::Compute, lane_.slots.data(slot), lane_.slots.bytes(slot),
                       what);
    }
  }
  DeviceLane& lane_;
};

/// Takes all parameters out of the base's groups for the length of a scope.
class EmptyGroups {
 public:
  explicit EmptyGroups(torch::optim::Optimizer& base)
      : base_(base), params_(base.param_groups().size()) {
    swap();
  }
  ~EmptyGroups() { swap(); }
  EmptyGroups(const EmptyGroups&) = delete;
  EmptyGroups& operator=(const EmptyGroups&) = delete;

 private:
  void swap() noexcept {
    for (size_t g = 0; g < params_.size(); ++g) base_.param_groups()[g].params().swap(params_[g]);
  }
  torch::optim::Optimizer& base_;
  std::vector<std::vector<at::Tensor>> params_;
};

/// The groups' options as each piece is to see them; null where the base changes none, so that all
/// pieces may have the groups' own.
std::unique_ptr<state::GroupOptions> options_for_pieces(StepContext& context, const StepPlan& plan);

using PieceSteps = std::vector<std::unique_ptr<PieceStep>>;

/// One device's pieces, one after the other on the compute lane. On a throw all is back home.
void step_lane_in_order(StepContext& context, DeviceLane& lane, state::GroupOptions* options,
                        PieceSteps& steps);

/// After a throw, with no copy of other pieces in flight: brings home what failed pieces left on
/// the device, and points every state tensor home. Never throws; where the device refuses,
/// `state_is_home` of the context becomes false.
void rescue(StepContext& context, DeviceLane& lane, const PieceSteps& steps) noexcept;

/// Adds to `error` which pieces have moved on; `steps` are those made so far, in order.
void explain(c10::Error& error, const StepContext& context, const PieceSteps& steps);

}  // namespace optim_offload::step
