#include "step/modes.h"

#include <algorithm>
#include <exception>
#include <string>

#include "error.h"

namespace optim_offload::step {

std::unique_ptr<state::GroupOptions> options_for_pieces(StepContext& context,
                                                        const StepPlan& plan) {
  if (context.traits.fixed_options) return nullptr;
  return std::make_unique<state::GroupOptions>(context.base.param_groups(),
                                               plan.last_piece_of_group());
}

void rescue(StepContext& context, DeviceLane& lane, const PieceSteps& steps) noexcept {
  using transfer::Direction;
  using transfer::Lane;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& error) {
      TORCH_WARN("[optim_offload] state of a failed piece could not be copied home (",
                 message_of(error),
                 "); the device is likely lost: end the process and resume from a checkpoint");
      context.state_is_home = false;
    }
  };
  if (lane.link != nullptr) {
    for (const auto& step : steps) {
      if (step->lane() != &lane || !step->failed()) continue;
      attempt([&] { lane.link->copy(Lane::Compute, Direction::ToHost, step->downloads()); });
    }
    // Also where a copy was refused: others may be going on.
    attempt([&] { lane.link->synchronize(Lane::Compute, transfer::WaitPoint::RescueDone); });
  }
  for (state::Member& member : context.registry.members()) {
    for (state::StateTensor& tensor : member.record.moved) tensor.go_home();
  }
}

void explain(c10::Error& error, const StepContext& context, const PieceSteps& steps) {
  const std::string where = "[optim_offload] step() failed ";
  const std::string rest =
      context.state_is_home
          ? "groups, options and state are in place"
          : "groups and options are in place, but state could not be brought home: resume from a "
            "checkpoint";
  // Pieces are stepped in their order, so that those done are the first.
  const auto done = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const auto& step) { return step->done(); }));
  const bool begun = done < steps.size() && steps[done]->failed();
  if (done == context.plan.piece_count()) {
    error.add_context(where + "after its last piece; all parameters have been stepped; " + rest);
    return;
  }
  if (done == 0 && !begun) {
    error.add_context(where + "before its first piece; nothing has changed");
    return;
  }
  const std::string piece = "piece " + std::to_string(done + 1) + " of " +
                            std::to_string(context.plan.piece_count()) + " (" +
                            context.plan.piece(done).name + "); ";
  if (begun) {
    error.add_context(where + "in " + piece +
                      "parameters of earlier pieces have been stepped, those of later ones have "
                      "not; " +
                      rest);
  } else {
    error.add_context(where + "before " + piece +
                      "parameters of earlier pieces have been stepped, those of this one and later "
                      "ones have not; " +
                      rest);
  }
}

}  // namespace optim_offload::step
