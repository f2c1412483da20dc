#include "step/modes.h"

#include <algorithm>
#include <exception>
#include <string>

#include "error.h"

namespace optim_offload::step {

void rescue(StepContext& context, DeviceLane& lane, const PieceSteps& steps) noexcept {
  using transfer::Direction;
  using transfer::Lane;
  try {
    if (lane.link != nullptr) {
      for (const auto& step : steps) {
        if (step->lane() == &lane && step->failed())
          lane.link->copy(Lane::Compute, Direction::ToHost, step->downloads());
      }
      lane.link->synchronize(Lane::Compute, transfer::WaitPoint::RescueDone);
    }
  } catch (const std::exception& error) {
    TORCH_WARN("[optim_offload] state of a failed piece could not be copied home (", error.what(),
               "); the device is likely lost: end the process and resume from a checkpoint");
  }
  for (const state::Member& member : context.registry.members()) {
    for (const state::StateTensor& tensor : member.record.moved) tensor.go_home();
  }
}

void explain(c10::Error& error, const StepPlan& plan, const PieceSteps& steps) {
  if (steps.empty()) {
    error.add_context("[optim_offload] step() failed before its first piece; nothing has changed");
    return;
  }
  const auto failed =
      std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step->failed(); });
  const BoundPiece& piece = (failed == steps.end() ? steps.back() : *failed)->piece();
  error.add_context(
      "[optim_offload] step() failed in piece " + std::to_string(piece.index + 1) + " of " +
      std::to_string(plan.piece_count()) + " (" + piece.name +
      "); parameters of earlier pieces have been stepped, those of later ones have not; "
      "groups, options and state are in place");
}

}  // namespace optim_offload::step
