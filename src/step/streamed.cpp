#include "step/modes.h"
#include "step/timeline.h"

namespace optim_offload::step {
namespace {

/// A device's slots while its pieces are on their way.
struct Stream {
  Stream(StepContext& context, DeviceLane& device_lane)
      : lane(device_lane), lease(context, device_lane) {}

  DeviceLane& lane;
  SlotLease lease;
};

void submit(StepContext& context, DeviceLane& lane, size_t slots, state::GroupOptions* options,
            PieceSteps& steps) {
  if (lane.pipeline == nullptr)
    lane.pipeline = std::make_unique<transfer::Pipeline>(*lane.link, slots);
  const TimelineScope timeline_scope(*lane.link, *lane.pipeline);
  lane.pipeline->begin(lane.uses_slots());
  for (BoundPiece& piece : lane.pieces) {
    steps.push_back(std::make_unique<PieceStep>(context, lane, piece, options));
    lane.pipeline->submit(*steps.back());
    context.clock.piece_queued();
  }
  lane.pipeline->drain();
  timeline_scope.write();
}

}  // namespace

void step_streamed(StepContext& context, StepPlan& plan, size_t slots) {
  const EmptyGroups empty(context.base);
  const auto options = options_for_pieces(context, plan);
  PieceSteps steps;
  std::vector<std::unique_ptr<Stream>> streams;
  try {
    for (const auto& lane : plan.lanes()) {
      if (lane->link == nullptr) {
        step_lane_in_order(context, *lane, options.get(), steps);
        continue;
      }
      streams.push_back(std::make_unique<Stream>(context, *lane));
      submit(context, *lane, slots, options.get(), steps);
    }
    context.clock.queued = StepClock::Clock::now();
    // Only now does the host wait, so that all devices were fed first.
    for (const auto& stream : streams) stream->lane.pipeline->finish();
  } catch (...) {
    for (const auto& stream : streams) {
      if (stream->lane.pipeline != nullptr && !stream->lane.pipeline->abort())
        context.state_is_home = false;
      rescue(context, stream->lane, steps);
    }
    try {
      throw;
    } catch (c10::Error& error) {
      explain(error, context, steps);
      throw;
    }
  }
}

}  // namespace optim_offload::step
