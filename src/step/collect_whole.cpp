#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <ATen/ops/empty_strided.h>

#include "align.h"
#include "error.h"
#include "step/piece_step.h"

namespace optim_offload::step {
namespace {

void go_home(state::Member& member) {
  for (state::StateTensor& tensor : member.record.moved) tensor.go_home();
}

std::vector<const void*> homes(const state::StateRecord& record) {
  std::vector<const void*> places;
  for (const state::StateTensor& tensor : record.moved) places.push_back(tensor.host_data());
  return places;
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
  auto found = state::find_state_tensors(object);
  state::StateRecord& record = member.record;
  const bool fresh = record.object == nullptr;
  const std::vector<const void*> places = homes(record);
  std::vector<state::StateTensor> before = std::exchange(record.moved, {});
  record.resident.clear();
  record.object = &object;
  const std::vector<bool> moving = state::which_move(found, member.param, /*loaded=*/false);
  if (fresh) {
    std::vector<size_t> bytes;
    for (size_t i = 0; i < found.size(); ++i) {
      if (moving[i]) bytes.push_back(align_up(memory::extent_bytes(found[i].tensor)));
    }
    context_.expect_homes(member, std::move(bytes));
  }

  std::exception_ptr failure;
  for (size_t i = 0; i < found.size(); ++i) {
    const state::FoundTensor& f = found[i];
    // Not one that was given other memory in place.
    const auto known = std::find_if(before.begin(), before.end(), [&](const auto& t) {
      return t.handle.is_same(f.tensor) && t.fits(f.tensor) &&
             (t.is_home() || f.tensor.const_data_ptr() == t.lent);
    });
    if (known != before.end()) {
      known->name = f.name;
      record.moved.push_back(std::move(*known));
      before.erase(known);
    } else {
      try {
        if (!lane_.slots.hold(f.tensor)) {
          // Of one that another parameter has taken home, which so lies on the host, too.
          context_.registry.check_unshared(member, f, moving[i]);
        } else if (f.tensor.numel() == 0) {
          // An archive would save the whole slot, as the tensor's storage.
          state::point_at(f.tensor, at::empty_strided(f.tensor.sizes(), f.tensor.strides(),
                                                      f.tensor.options()));
        } else {
          check_lent_memory(member, f, moving[i], before);
        }
        if (moving[i]) {
          adopt(member, f, before);
          continue;
        }
      } catch (...) {
        if (!failure) failure = std::current_exception();
        if (lane_.slots.hold(f.tensor) && take_out_of_slot(member, f)) continue;
      }
      // Without a home it stays where it is, and the base can go on using it.
      record.resident.push_back(f.tensor);
    }
  }
  // Plans know a tensor by its number: they hold only while each number keeps its place.
  if (homes(record) != places) ++record.version;
  for (auto& tensor : before) {
    // Somebody else may hold it, and the slot's memory is about to go.
    if (lane_.slots.hold(tensor.handle)) tensor.go_home();
    kept_homes_.push_back(std::move(tensor.home));
  }
  if (failure) {
    record.incomplete = true;
    go_home(member);
    std::rethrow_exception(failure);
  }
  if (fresh) context_.plan.forecast().learn(member);
}

bool PieceStep::take_out_of_slot(state::Member& member, const state::FoundTensor& found) noexcept {
  try {
    state::StateTensor tensor =
        context_.host.make_home(found, found.tensor.sizes(), found.tensor.strides(), member.param);
    const auto* data = static_cast<const std::byte*>(found.tensor.const_data_ptr());
    if (in_slot(found.tensor) &&
        data + tensor.bytes <= lane_.slots.data(piece_.slot) + lane_.slots.bytes(piece_.slot)) {
      bring_home(found.tensor, tensor.host_data(), tensor.bytes);
    } else {
      std::memset(tensor.host_data(), 0, tensor.bytes);  // another piece's may be going on there
    }
    member.record.moved.push_back(std::move(tensor));
    return true;
  } catch (const std::exception&) {
    return false;  // what led here is reported
  }
}

void PieceStep::check_lent_memory(const state::Member& member, const state::FoundTensor& found,
                                  bool moves, std::span<const state::StateTensor> before) const {
  const auto same = std::find_if(before.begin(), before.end(),
                                 [&](const auto& t) { return t.handle.is_same(found.tensor); });
  OFFLOAD_CHECK(same == before.end() || memory::extent_bytes(found.tensor) <= same->bytes,
                "the optimizer made a state tensor larger in place (", member.label(), ", ",
                found.name, ": ", found.tensor.sizes(), " from ", same->home.sizes(),
                "), which may have overwritten others: give the state a new tensor instead, and "
                "resume from a checkpoint");
  const auto* data = static_cast<const std::byte*>(found.tensor.const_data_ptr());
  const auto lies_in = [&](const state::StateTensor& t) {
    return t.lent != nullptr && t.lent <= data &&
           data + memory::extent_bytes(found.tensor) <= t.lent + t.bytes;
  };
  const auto& moved = member.record.moved;
  const bool own = std::any_of(before.begin(), before.end(), lies_in) ||
                   std::any_of(moved.begin(), moved.end(), lies_in);
  OFFLOAD_CHECK(moves && own, "the optimizer made a state tensor over another's memory (",
                member.label(), ", ", found.name, ": ", found.tensor.sizes(),
                "), which is on the device for the step only; give it memory of its own (clone()), "
                "and resume from a checkpoint");
}

void PieceStep::adopt(state::Member& member, const state::FoundTensor& found,
                      std::vector<state::StateTensor>& before) {
  // A tensor of the same name and form takes the place of the one that the base let go of.
  const auto place =
      std::find_if(before.begin(), before.end(), [&](const auto& t) { return t.can_house(found); });
  state::StateTensor tensor;
  if (place != before.end()) {
    tensor = std::move(*place);
    tensor.handle = found.tensor;
    before.erase(place);
  } else {
    tensor =
        context_.host.make_home(found, found.tensor.sizes(), found.tensor.strides(), member.param);
  }
  bring_home(found.tensor, tensor.host_data(), tensor.bytes);
  member.record.moved.push_back(std::move(tensor));
}

}  // namespace optim_offload::step
