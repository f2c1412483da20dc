#include <exception>

#include "step/modes.h"

namespace optim_offload::step {
namespace {

using transfer::Direction;
using transfer::Lane;

struct LaneSteps {
  DeviceLane* lane;
  std::unique_ptr<SlotLease> lease;
  PieceSteps steps;
  size_t entered = 0;  ///< Steps whose state is on the device.
};

void upload(LaneSteps& lane) {
  for (const auto& step : lane.steps) {
    if (lane.lane->link != nullptr) {
      lane.lane->link->copy(Lane::Compute, Direction::ToDevice, step->uploads());
    }
    step->enter();
    ++lane.entered;
  }
}

/// Brings home what every entered piece left on the device, also where one of them cannot be
/// collected; gives the first failure.
std::exception_ptr download(LaneSteps& lane) {
  std::exception_ptr failure;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  for (size_t i = 0; i < lane.entered; ++i) {
    PieceStep& step = *lane.steps[i];
    attempt([&] { step.collect(); });
    if (lane.lane->link == nullptr) continue;
    attempt([&] { lane.lane->link->copy(Lane::Compute, Direction::ToHost, step.downloads()); });
  }
  return failure;
}

}  // namespace

void step_all_at_once(StepContext& context, StepPlan& plan) {
  std::vector<LaneSteps> lanes;
  std::exception_ptr failure;
  try {
    for (const auto& lane : plan.lanes()) {
      lanes.push_back({lane.get(), std::make_unique<SlotLease>(context, *lane), {}});
      for (BoundPiece& piece : lane->pieces) {
        lanes.back().steps.push_back(std::make_unique<PieceStep>(context, *lane, piece));
      }
    }
    for (LaneSteps& lane : lanes) upload(lane);
    context.result = context.base.step(context.closure);
  } catch (...) {
    failure = std::current_exception();
  }
  // Also after a throw: as with the plain optimizer, what the base did before it is kept.
  for (LaneSteps& lane : lanes) {
    const std::exception_ptr later = download(lane);
    if (failure == nullptr) failure = later;
  }
  context.clock.queued = StepClock::Clock::now();
  if (failure != nullptr) {
    for (LaneSteps& lane : lanes) rescue(context, *lane.lane, {});
    std::rethrow_exception(failure);
  }
  for (LaneSteps& lane : lanes) {
    if (lane.lane->link != nullptr) {
      lane.lane->link->synchronize(Lane::Compute, transfer::WaitPoint::WholeStepDone);
    }
    for (const auto& step : lane.steps) step->retire();
  }
}

}  // namespace optim_offload::step
