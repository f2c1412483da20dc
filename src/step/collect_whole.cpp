#include <algorithm>
#include <exception>
#include <utility>

#include "align.h"
#include "step/piece_step.h"

namespace optim_offload::step {
namespace {

void go_home(const state::Member& member) {
  for (const state::StateTensor& tensor : member.record.moved) tensor.go_home();
}

}  // namespace

void PieceStep::collect_whole(const plan::Part& part) {
  state::Member& member = context_.member(part);
  const auto entry = context_.states().find(member.param.unsafeGetTensorImpl());
  const auto* object = entry == context_.states().end() ? nullptr : entry->second.get();
  if (object == nullptr) {
    if (member.record.object != nullptr) {  // the base dropped it
      for (auto& tensor : member.record.moved) kept_homes_.push_back(std::move(tensor.home));
      member.record.forget();
    }
    member.stateless = member.param.grad().defined();
    return;
  }
  member.stateless = false;
  if (!context_.traits.fixed_state || !member.record.describes(object)) {
    reread_whole(member, *object);
  }
  go_home(member);
}

void PieceStep::reread_whole(state::Member& member,
                             const torch::optim::OptimizerParamState& object) {
  const bool fresh = member.record.object == nullptr;
  std::vector<state::StateTensor> before = std::exchange(member.record.moved, {});
  member.record.resident.clear();
  member.record.object = &object;

  const auto found = state::find_state_tensors(object);
  if (fresh) {
    std::vector<size_t> bytes;
    for (const auto& f : found) {
      if (!state::moves(f.name, f.tensor, member.param, false)) continue;
      bytes.push_back(align_up(memory::extent_bytes(f.tensor)));
    }
    context_.expect_homes(member, std::move(bytes));
  }
  std::exception_ptr failure;
  for (const state::FoundTensor& f : found) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const auto& t) { return t.handle.is_same(f.tensor); });
    if (known != before.end()) {
      member.record.moved.push_back(std::move(*known));
      before.erase(known);
      continue;
    }
    if (!state::moves(f.name, f.tensor, member.param, false)) {
      member.record.resident.push_back(f.tensor);
      continue;
    }
    const auto& moved = member.record.moved;
    if (std::any_of(moved.begin(), moved.end(),
                    [&](const auto& t) { return t.handle.is_same(f.tensor); })) {
      continue;
    }
    // A tensor of the same name and form takes the place of the one that the base let go of.
    const auto place = std::find_if(before.begin(), before.end(), [&](const auto& t) {
      return t.name == f.name && t.handle.use_count() == 1 && t.home.sizes() == f.tensor.sizes() &&
             t.home.strides() == f.tensor.strides() && t.home.dtype() == f.tensor.dtype();
    });
    try {
      adopt(member, f, place == before.end() ? nullptr : &*place);
    } catch (...) {
      // Without a home it stays on the device, where the base can go on using it.
      failure = std::current_exception();
      member.record.resident.push_back(f.tensor);
      continue;
    }
    if (place != before.end()) before.erase(place);
  }
  if (!before.empty()) ++member.record.version;
  for (auto& tensor : before) kept_homes_.push_back(std::move(tensor.home));
  if (failure) {
    member.record.incomplete = true;
    go_home(member);
    std::rethrow_exception(failure);
  }
  if (fresh) context_.plan.forecast().learn(member);
}

void PieceStep::adopt(state::Member& member, const state::FoundTensor& found,
                      state::StateTensor* same_place) {
  state::StateTensor tensor;
  if (same_place != nullptr) {
    tensor = std::move(*same_place);
    tensor.handle = found.tensor;
  } else {
    tensor =
        context_.host.make_home(found, found.tensor.sizes(), found.tensor.strides(), member.param);
    ++member.record.version;
  }
  bring_home(found.tensor, tensor.host_data(), tensor.bytes);
  member.record.moved.push_back(std::move(tensor));
}

}  // namespace optim_offload::step
