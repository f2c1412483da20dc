#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "step/bound_piece.h"
#include "step/device_lane.h"
#include "step/step_context.h"
#include "transfer/pipeline.h"

namespace optim_offload::step {

/// One piece in one step: takes its state to the slot, steps the base on it, collects what the base
/// left. What differs between whole parameters and tiles is in collect_whole.cpp, tile.cpp and
/// tile_state.cpp.
class PieceStep final : public transfer::PieceJob {
 public:
  /// Slots have their memory. In the chunked modes the base's groups hold no parameters but
  /// those of the piece being stepped; `options` is theirs, see options_for_pieces().
  PieceStep(StepContext& context, DeviceLane& lane, BoundPiece& piece,
            state::GroupOptions* options = nullptr);
  ~PieceStep() override { retire(); }

  const char* name() const override { return piece_.name.c_str(); }
  std::span<const transfer::Copy> uploads() const override { return uploads_; }
  std::span<const transfer::Copy> compute() override;
  void downloads_queued() override { progress_ = Progress::Done; }
  bool holds_memory() const override { return !kept_storages_.empty(); }
  void retire() override;

  /// The parts of compute(), for a step in which the base is called once for all pieces.
  void enter();
  std::span<const transfer::Copy> collect();

  const BoundPiece& piece() const { return piece_; }
  const DeviceLane* lane() const { return &lane_; }

  /// Whether the piece was begun, but its copies home were not queued: then they still have to be
  /// made, so that state goes with the weights that the base has changed.
  bool failed() const { return progress_ == Progress::Begun; }
  /// Whether the piece was stepped and its copies home were queued.
  bool done() const { return progress_ == Progress::Done; }
  std::span<const transfer::Copy> downloads() const { return downloads_; }

 private:
  enum class Progress { Waiting, Begun, Done };

  void step_base();
  void collect_after_throw() noexcept;
  void swap_params();
  void collect_whole(const plan::Part& part);
  void reread_whole(state::Member& member, const torch::optim::OptimizerParamState& object);
  /// Throws where a new tensor of the state, which lies in a slot, does not lie in memory that
  /// was lent to this state, or does not have it for itself. `before`: tensors of the record not
  /// found again yet.
  void check_lent_memory(const state::Member& member, const state::FoundTensor& found, bool moves,
                         std::span<const state::StateTensor> before) const;
  /// Gives a tensor that must not stay in a slot a home all the same, so that it can be read. False
  /// where there is no memory for it.
  bool take_out_of_slot(state::Member& member, const state::FoundTensor& found) noexcept;
  void adopt(state::Member& member, const state::FoundTensor& found,
             std::vector<state::StateTensor>& before);

  void enter_tile();
  /// Whether the base gave the tile's parameter other memory (set_data); if so, undoes it.
  bool take_back_alias();
  void collect_tile();
  void tile_made_state(const torch::optim::OptimizerParamState& object);
  void tile_kept_state(const torch::optim::OptimizerParamState& object);
  /// Whether a tensor lies in what was lent to one of the tile's.
  bool lies_in_a_view(const at::Tensor& tensor) const;
  void leave_tile();

  /// Takes these bytes of host memory, a block of their own, out of the copies home from the slot.
  void leave_out(std::byte* to, size_t bytes);

  /// Whether the tensor's memory is the slot's.
  bool in_slot(const at::Tensor& tensor) const;

  /// Queues a copy home of a tensor, in place of what the slot has for it, and keeps the tensor's
  /// memory until it is done; the slot's is kept anyway.
  void bring_home(const at::Tensor& from, std::byte* to, size_t bytes);

  StepContext& context_;
  const DeviceLane& lane_;
  BoundPiece& piece_;
  state::GroupOptions* options_;
  std::vector<transfer::Copy> uploads_;
  std::vector<transfer::Copy> downloads_;    // first those from the slot
  size_t from_slot_ = 0;                     // their number; they do not overlap on the host
  std::vector<c10::Storage> kept_storages_;  // device memory of downloads from outside the slot
  std::vector<at::Tensor> kept_homes_;       // host memory that downloads still write
  size_t kept_bytes_ = 0;
  Progress progress_ = Progress::Waiting;
};

}  // namespace optim_offload::step
