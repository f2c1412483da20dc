#include <exception>
#include <string>

#include "error.h"
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

/// How far the base got.
enum class Call { Before, Inside, After };

void upload(LaneSteps& lane) {
  for (const auto& step : lane.steps) {
    if (lane.lane->link != nullptr) {
      lane.lane->link->copy(Lane::Compute, Direction::ToDevice, step->uploads());
    }
    step->enter();
    ++lane.entered;
  }
}

/// Does `work`; keeps the first failure of many.
template <typename Work>
void attempt(std::exception_ptr& failure, const Work& work) {
  try {
    work();
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
}

/// Brings home what every entered piece left on the device, also where one of them cannot be
/// collected.
void download(LaneSteps& lane, std::exception_ptr& failure) {
  for (size_t i = 0; i < lane.entered; ++i) {
    PieceStep& step = *lane.steps[i];
    attempt(failure, [&] { step.collect(); });
    attempt(failure, [&] {
      if (lane.lane->link != nullptr)
        lane.lane->link->copy(Lane::Compute, Direction::ToHost, step.downloads());
      step.downloads_queued();
    });
  }
}

/// The base's own error is enough where it threw and all is home.
void explain_call(c10::Error& error, Call call, bool state_is_home) {
  const std::string where = "[optim_offload] step() failed ";
  if (call == Call::Before) {
    error.add_context(where + "before the optimizer was called; nothing has changed");
  } else if (!state_is_home) {
    error.add_context(where +
                      "and state could not be brought home: resume from a checkpoint; groups and "
                      "options are in place");
  } else if (call == Call::After) {
    error.add_context(where +
                      "after the optimizer's own step; all parameters have been stepped; groups, "
                      "options and state are in place");
  }
}

}  // namespace

void step_all_at_once(StepContext& context, StepPlan& plan) {
  std::vector<LaneSteps> lanes;
  std::exception_ptr failure;
  Call call = Call::Before;
  attempt(failure, [&] {
    for (const auto& lane : plan.lanes()) {
      lanes.push_back({lane.get(), std::make_unique<SlotLease>(context, *lane), {}});
      for (BoundPiece& piece : lane->pieces) {
        lanes.back().steps.push_back(std::make_unique<PieceStep>(context, *lane, piece));
      }
    }
    for (LaneSteps& lane : lanes) upload(lane);
    call = Call::Inside;
    context.result = context.base.step(context.closure);
    call = Call::After;
  });
  if (call == Call::Inside) state::erase_empty(context.states());
  // Also after a throw: as with the plain optimizer, what the base did before it is kept.
  for (LaneSteps& lane : lanes) download(lane, failure);
  context.clock.queued = StepClock::Clock::now();
  for (LaneSteps& lane : lanes) {
    attempt(failure, [&] {
      if (lane.lane->link != nullptr)
        lane.lane->link->synchronize(Lane::Compute, transfer::WaitPoint::WholeStepDone);
    });
  }
  if (failure != nullptr) {
    for (LaneSteps& lane : lanes) rescue(context, *lane.lane, lane.steps);
    try {
      std::rethrow_exception(failure);
    } catch (c10::Error& error) {
      explain_call(error, call, context.state_is_home);
      throw;
    }
  }
  for (LaneSteps& lane : lanes) {
    for (const auto& step : lane.steps) step->retire();
  }
}

}  // namespace optim_offload::step
