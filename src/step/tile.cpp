#include <algorithm>
#include <utility>

#include "error.h"
#include "step/piece_step.h"

namespace optim_offload::step {

// A tile is stepped under an alias of its own: a flat parameter with the tile's slice of the
// gradient. Its state is a clone of the parameter's, which shares the tensors but has counters of
// its own, so that each tile starts from the same counters; the last tile gets the parameter's own
// object, which so ends as after one step.

namespace {

/// Counters on the CPU may have been replaced by the base or the user since they were last seen.
void refresh_residents(state::Member& member, const torch::optim::OptimizerParamState& object) {
  member.record.resident.clear();
  for (const state::FoundTensor& found : state::find_state_tensors(object)) {
    const auto& moved = member.record.moved;
    const bool moves = std::any_of(moved.begin(), moved.end(), [&](const state::StateTensor& t) {
      return t.handle.is_same(found.tensor);
    });
    if (!moves) member.record.resident.push_back(found.tensor);
  }
}

}  // namespace

void PieceStep::enter_tile() {
  const plan::Part& part = piece_.tile();
  state::Member& member = context_.member(part);
  at::Tensor alias = piece_.alias();
  auto& states = context_.states();
  auto own = states.find(member.param.unsafeGetTensorImpl());
  alias.set_requires_grad(member.param.requires_grad());  // may have been frozen since

  if (part.tile == 0) {
    context_.making = {};
    context_.counters.clear();
    if (own != states.end() && !member.record.resident.empty())
      refresh_residents(member, *own->second);
    for (const at::Tensor& tensor : member.record.resident)
      context_.counters.push_back(tensor.clone());
  } else {
    for (size_t i = 0; i < context_.counters.size(); ++i) {
      member.record.resident[i].copy_(context_.counters[i]);
    }
  }
  const at::Tensor grad = flat_slice(member.param.grad(), part.begin, part.end - part.begin);
  if (own == states.end()) {
    alias.mutable_grad() = grad;
    return;
  }
  std::unique_ptr<torch::optim::OptimizerParamState> object;
  if (part.is_last_tile()) {
    object = std::move(own->second);
    states.erase(own);
  } else {
    object = own->second->clone();
  }
  states[alias.unsafeGetTensorImpl()] = std::move(object);
  alias.mutable_grad() = grad;
}

bool PieceStep::take_back_alias() {
  const plan::Part& part = piece_.tile();
  const at::Tensor& param = context_.member(part).param;
  const at::Tensor& alias = piece_.alias();
  if (alias.is_alias_of(param)) return false;
  state::point_at(alias, flat_slice(param, part.begin, part.end - part.begin));
  return true;
}

void PieceStep::collect_tile() {
  const state::Member& member = context_.member(piece_.tile());
  auto& states = context_.states();
  const bool replaced = take_back_alias();
  const at::Tensor& grad = piece_.alias().grad();
  const bool other_grad =
      grad.defined() && !(grad.has_storage() && grad.is_alias_of(member.param.grad()));
  const auto entry = states.find(piece_.alias().unsafeGetTensorImpl());
  if (entry != states.end() && entry->second != nullptr) {
    try {
      if (member.record.object != nullptr) {
        tile_kept_state(*entry->second);
      } else {
        tile_made_state(*entry->second);
      }
    } catch (...) {
      leave_tile();
      throw;
    }
  }
  leave_tile();
  OFFLOAD_CHECK(!replaced, "an element-wise optimizer put another tensor in a parameter's place (",
                member.label(), "); change parameters in place, or do not declare it element_wise");
  OFFLOAD_CHECK(!other_grad, "an element-wise optimizer put another tensor in a gradient's place (",
                member.label(), "); change gradients in place, or do not declare it element_wise");
}

void PieceStep::leave_tile() {
  const plan::Part& part = piece_.tile();
  state::Member& member = context_.member(part);
  at::Tensor alias = piece_.alias();
  // A base may call zero_grad(); the other tiles had to see the gradient first.
  if (part.is_last_tile() && !alias.grad().defined()) member.param.mutable_grad() = at::Tensor();
  alias.mutable_grad() = at::Tensor();

  auto& states = context_.states();
  const auto entry = states.find(alias.unsafeGetTensorImpl());
  if (entry == states.end()) {
    if (part.is_last_tile()) member.stateless = member.record.object == nullptr;
  } else {
    auto object = std::move(entry->second);
    states.erase(entry);
    // State that was not all made is let go: it has the form of a tile.
    if (part.is_last_tile() && member.record.object != nullptr) {
      states[member.param.unsafeGetTensorImpl()] = std::move(object);
    }
  }
  if (part.is_last_tile()) {
    for (state::StateTensor& tensor : member.record.moved) tensor.go_home();
  }
}

}  // namespace optim_offload::step
