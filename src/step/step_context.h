#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "optim_offload/traits.h"
#include "state/group_options.h"
#include "state/host_state.h"
#include "step/step_plan.h"

namespace optim_offload::step {

/// A parameter's state while its tiles make it, one after the other.
struct StateInTheMaking {
  std::vector<state::StateTensor> moved;  ///< With homes of the whole parameter's size.
  std::vector<at::Tensor> resident;
};

/// When work was queued.
struct StepClock {
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kSampled = 64;  ///< Pieces before the driver's queues can be full.

  Clock::time_point begun{};
  Clock::time_point sampled{};  ///< After the first pieces.
  Clock::time_point queued{};   ///< After all.
  size_t pieces = 0;

  void piece_queued() {
    if (pieces++ < kSampled) sampled = Clock::now();
  }
  double queue_seconds() const { return std::chrono::duration<double>(queued - begun).count(); }
  double host_seconds() const {
    if (pieces <= kSampled) return queue_seconds();
    const std::chrono::duration<double> sample = sampled - begun;
    return sample.count() * static_cast<double>(pieces) / static_cast<double>(kSampled);
  }
};

/// What the pieces of one step share. Lives as long as the step; the base holds groups and state.
struct StepContext {
  torch::optim::Optimizer& base;
  state::Registry& registry;
  state::HostState& host;
  OptimizerTraits traits;
  torch::optim::Optimizer::LossClosure closure;  ///< What the base is given for each piece.
  int closure_calls = 0;                         ///< By the piece being stepped.
  uint64_t weights_version = 0;                  ///< Of its parameters, before it was stepped.

  StepPlan& plan;

  StateInTheMaking making{};
  std::vector<at::Tensor>
      counters{};  ///< Resident tensors of a tiled parameter before its first tile.

  at::Tensor result{};    ///< What the base returned last.
  size_t held_bytes = 0;  ///< New state now on the device, outside of slots.
  size_t peak_held_bytes = 0;
  size_t h2d_bytes = 0;
  size_t d2h_bytes = 0;
  size_t slot_bytes = 0;      ///< Of all slots that were given memory.
  bool state_is_home = true;  ///< False where a failed step could not bring it home.
  StepClock clock{};

  state::StateMap& states() const { return base.state(); }
  state::Member& member(const plan::Part& part) const { return registry.members()[part.param]; }

  void hold(size_t bytes) {
    held_bytes += bytes;
    if (held_bytes > peak_held_bytes) peak_held_bytes = held_bytes;
  }

  /// Tells the arena what `member`, about to get homes for tensors of these aligned bytes, and the
  /// members after it will need.
  void expect_homes(const state::Member& member, std::vector<size_t> tensor_bytes);
};

}  // namespace optim_offload::step
