#include "step/modes.h"

namespace optim_offload::step {
namespace {

using transfer::Direction;
using transfer::Lane;

struct LaneSteps {
  DeviceLane* lane;
  std::unique_ptr<SlotLease> lease;
  PieceSteps steps;
};

void download(LaneSteps& lane) {
  for (const auto& step : lane.steps) {
    const auto copies = step->collect();
    if (lane.lane->link != nullptr) lane.lane->link->copy(Lane::Compute, Direction::ToHost, copies);
  }
}

}  // namespace

void step_all_at_once(StepContext& context, StepPlan& plan) {
  std::vector<LaneSteps> lanes;
  for (const auto& lane : plan.lanes()) {
    lanes.push_back({lane.get(), std::make_unique<SlotLease>(context, *lane), {}});
    for (BoundPiece& piece : lane->pieces) {
      lanes.back().steps.push_back(std::make_unique<PieceStep>(context, *lane, piece));
    }
  }
  const auto settle = [&] {
    for (LaneSteps& lane : lanes) {
      if (lane.lane->link != nullptr) lane.lane->link->synchronize(Lane::Compute);
      for (const auto& step : lane.steps) step->retire();
    }
  };
  try {
    for (LaneSteps& lane : lanes) {
      for (const auto& step : lane.steps) {
        if (lane.lane->link != nullptr) {
          lane.lane->link->copy(Lane::Compute, Direction::ToDevice, step->uploads());
        }
        step->enter();
      }
    }
    context.result = context.base.step(context.closure);
  } catch (...) {
    // As with the plain optimizer, what the base did before it threw is kept.
    for (LaneSteps& lane : lanes) {
      try {
        download(lane);
      } catch (const std::exception& error) {
        TORCH_WARN("[optim_offload] state could not all be brought home after a failed step (",
                   error.what(), ")");
      }
      rescue(context, *lane.lane, {});
    }
    throw;
  }
  try {
    for (LaneSteps& lane : lanes) download(lane);
  } catch (...) {
    for (LaneSteps& lane : lanes) rescue(context, *lane.lane, {});
    throw;
  }
  context.clock.queued = StepClock::Clock::now();
  settle();
}

}  // namespace optim_offload::step
