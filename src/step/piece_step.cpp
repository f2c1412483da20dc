#include "step/piece_step.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "align.h"
#include "error.h"
#include "state/weights_version.h"

namespace optim_offload::step {

void StepContext::expect_homes(const state::Member& member, std::vector<size_t> tensor_bytes) {
  host.arena().expect([this, &member, own = std::move(tensor_bytes)] {
    const auto& members = registry.members();
    std::vector<size_t> upcoming = own;
    const auto& order = plan.order();
    bool later = false;
    for (const size_t i : order) {
      const state::Member& other = members[i];
      if (later && other.record.object == nullptr && !other.stateless &&
          other.param.grad().defined()) {
        for (const size_t bytes : plan.forecast().tensor_bytes(other)) upcoming.push_back(bytes);
      }
      later = later || &other == &member;
    }
    return upcoming;
  });
}

PieceStep::PieceStep(StepContext& context, DeviceLane& lane, BoundPiece& piece,
                     state::GroupOptions* options)
    : context_(context), lane_(lane), piece_(piece), options_(options) {
  if (lane.link == nullptr || piece.up.empty()) return;
  std::byte* slot = lane.slots.data(piece.slot);
  for (const Run& run : piece.up) {
    uploads_.push_back({slot + run.offset, run.host, run.bytes});
    context.h2d_bytes += run.bytes;
  }
  for (const Run& run : piece.down) {
    downloads_.push_back({run.host, slot + run.offset, run.bytes});
    context.d2h_bytes += run.bytes;
  }
  from_slot_ = downloads_.size();
}

void PieceStep::swap_params() {
  auto& groups = context_.base.param_groups();
  for (GroupParams& group : piece_.groups) groups[group.group].params().swap(group.params);
}

void PieceStep::enter() {
  progress_ = Progress::Begun;  // until all is queued
  if (piece_.views.empty()) return;
  const std::byte* slot = lane_.slots.data(piece_.slot);
  for (const BoundView& view : piece_.views) {
    auto& tensor = context_.registry.members()[view.member].record.moved[view.tensor];
    state::point_at(tensor.handle, view.device);
    tensor.lent = slot + view.offset;
  }
}

std::span<const transfer::Copy> PieceStep::compute() {
  if (options_ != nullptr) options_->before_piece(piece_.index);
  enter();
  if (piece_.is_tile()) enter_tile();
  try {
    step_base();
  } catch (...) {
    collect_after_throw();
    throw;
  }
  collect();
  if (options_ != nullptr) {
    std::vector<size_t> stepped;
    for (const GroupParams& group : piece_.groups) stepped.push_back(group.group);
    options_->after_piece(stepped);
  }
  return downloads_;
}

void PieceStep::collect_after_throw() noexcept {
  // As with the plain optimizer, what the base did before it threw is kept.
  try {
    collect();
  } catch (const std::exception& error) {
    TORCH_WARN("[optim_offload] new state of a failed piece stays on the device (",
               message_of(error), ")");
  }
}

void PieceStep::step_base() {
  context_.closure_calls = 0;
  swap_params();
  try {
    if (context_.closure != nullptr)
      context_.weights_version = state::weights_version(context_.base.param_groups());
    context_.result = context_.base.step(context_.closure);
  } catch (...) {
    swap_params();
    state::erase_empty(context_.states());
    throw;
  }
  swap_params();
}

std::span<const transfer::Copy> PieceStep::collect() {
  if (lane_.link == nullptr) return {};
  if (piece_.is_tile()) {
    collect_tile();
  } else {
    std::exception_ptr failure;
    for (const plan::Part& part : piece_.plan.parts) {
      try {
        collect_whole(part);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }
  return downloads_;
}

void PieceStep::leave_out(std::byte* to, size_t bytes) {
  // With what is behind it up to the next block: padding is not worth a copy.
  const auto address = reinterpret_cast<uintptr_t>(to);
  std::byte* const end = to + (align_up(address + bytes) - address);
  for (size_t i = 0; i < from_slot_;) {
    const transfer::Copy copy = downloads_[i];
    auto* const first = static_cast<std::byte*>(copy.dst);
    std::byte* const last = first + copy.bytes;
    if (end <= first || last <= to) {
      ++i;
      continue;
    }
    // The last of those from the slot takes its place, and the last of all that one's.
    downloads_[i] = downloads_[--from_slot_];
    downloads_[from_slot_] = downloads_.back();
    downloads_.pop_back();
    context_.d2h_bytes -= copy.bytes;
    const auto keep = [&](std::byte* from, std::byte* until) {
      if (from >= until) return;
      const auto* source = static_cast<const std::byte*>(copy.src) + (from - first);
      downloads_.push_back({from, source, static_cast<size_t>(until - from)});
      std::swap(downloads_.back(), downloads_[from_slot_++]);
      context_.d2h_bytes += static_cast<size_t>(until - from);
    };
    keep(first, to);
    keep(end, last);
  }
}

bool PieceStep::in_slot(const at::Tensor& tensor) const {
  if (uploads_.empty() || !tensor.has_storage()) return false;
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  const std::byte* slot = lane_.slots.data(piece_.slot);
  return data >= slot && data < slot + lane_.slots.bytes(piece_.slot);
}

void PieceStep::bring_home(const at::Tensor& from, std::byte* to, size_t bytes) {
  leave_out(to, bytes);
  downloads_.push_back({to, from.const_data_ptr(), bytes});
  context_.d2h_bytes += bytes;
  if (in_slot(from)) return;  // two tensors of the state that changed places: nothing to keep
  kept_storages_.push_back(from.storage());
  kept_bytes_ += bytes;
  context_.hold(bytes);
}

void PieceStep::retire() {
  context_.held_bytes -= std::exchange(kept_bytes_, 0);
  for (const c10::Storage& storage : kept_storages_) {
    lane_.link->uses(transfer::Lane::Compute, storage.data(), storage.nbytes(),
                     "later work in a piece's memory");
  }
  kept_storages_.clear();
}

}  // namespace optim_offload::step
