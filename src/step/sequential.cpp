#include "step/modes.h"

namespace optim_offload::step {

void step_lane_in_order(StepContext& context, DeviceLane& lane, state::GroupOptions* options,
                        PieceSteps& steps) {
  using transfer::Direction;
  using transfer::Lane;

  const SlotLease lease(context, lane);
  transfer::Link* link = lane.link.get();
  try {
    for (BoundPiece& piece : lane.pieces) {
      steps.push_back(std::make_unique<PieceStep>(context, lane, piece, options));
      PieceStep& step = *steps.back();
      if (link != nullptr) link->copy(Lane::Compute, Direction::ToDevice, step.uploads());
      const auto copies = step.compute();
      if (link != nullptr) link->copy(Lane::Compute, Direction::ToHost, copies);
      step.downloads_queued();
      context.clock.piece_queued();
      step.retire();  // the allocator reuses the memory in the compute lane's order
    }
    context.clock.queued = StepClock::Clock::now();
    if (link != nullptr) link->synchronize(Lane::Compute, transfer::WaitPoint::SequenceDone);
  } catch (...) {
    rescue(context, lane, steps);
    throw;
  }
}

void step_sequential(StepContext& context, StepPlan& plan) {
  const EmptyGroups empty(context.base);
  const auto options = options_for_pieces(context, plan);
  PieceSteps steps;
  try {
    for (const auto& lane : plan.lanes()) step_lane_in_order(context, *lane, options.get(), steps);
  } catch (c10::Error& error) {
    explain(error, context, steps);
    throw;
  }
}

}  // namespace optim_offload::step
