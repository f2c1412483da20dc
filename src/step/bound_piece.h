#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "memory/slots.h"
#include "plan/piece.h"
#include "state/registry.h"

namespace optim_offload::step {

/// Neighbouring state that travels as one copy.
struct Run {
  std::byte* host;
  size_t offset;  ///< In the slot.
  size_t bytes;
};

/// Where a state tensor, or its part in a tile, lies in the slot.
struct BoundView {
  size_t member;
  size_t tensor;  ///< Index into the member's record.
  size_t offset;  ///< In the slot.
  at::Tensor device;
};

/// The parameters of a group that a piece steps: whole ones, or the alias of a tile.
struct GroupParams {
  size_t group;
  std::vector<at::Tensor> params;
};

/// A piece of the plan, tied to the tensors it steps, the state that visits with it and a slot.
/// Good for as many steps as nothing of that changes.
struct BoundPiece {
  size_t index = 0;  ///< In the step's order.
  plan::Piece plan;
  std::string name;  ///< For messages and time lines.
  size_t slot = 0;
  size_t slot_bytes = 0;
  std::vector<Run> up;
  std::vector<Run> down;  ///< A tile that is not the last takes no counters home.
  std::vector<BoundView> views;
  std::vector<GroupParams> groups;

  bool is_tile() const { return !plan.parts.empty() && plan.parts.front().is_tile(); }
  const plan::Part& tile() const { return plan.parts.front(); }
  /// The flat alias that stands for the parameter while its tile is stepped.
  const at::Tensor& alias() const { return groups.front().params.front(); }
};

/// Lays the piece's state out in a slot and makes its parameter lists; no views yet. The state of
/// members that `visits` does not name stays at home, as the base leaves it alone.
BoundPiece bind_piece(const plan::Piece& piece, const std::vector<state::Member>& members,
                      const std::vector<bool>& visits);

/// Makes the views, once the slots have their sizes.
void make_views(BoundPiece& piece, const std::vector<state::Member>& members,
                const memory::Slots& slots);

/// `length` elements from `begin` of a dense tensor, in memory order, as a flat tensor.
at::Tensor flat_slice(const at::Tensor& tensor, int64_t begin, int64_t length);

}  // namespace optim_offload::step
