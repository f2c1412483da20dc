#include <algorithm>
#include <utility>

#include "align.h"
#include "error.h"
#include "step/piece_step.h"

namespace optim_offload::step {

// What the base left of a tile's state: a part of the parameter's, which is made whole on the host.

namespace {

/// A tensor that does not move with the tiles is the same for all: one with elements of the
/// parameter would hold the last tile's alone.
void check_own_memory(const state::Member& member, const state::FoundTensor& found, bool own) {
  OFFLOAD_CHECK(own,
                "an element-wise optimizer made a state tensor that shares memory or does not lie "
                "on the parameter's device (",
                member.label(), ", ", found.name, ": ", found.tensor.sizes(),
                "); give the state a tensor of its own there (clone()), or do not declare it "
                "element_wise");
}

}  // namespace

void PieceStep::tile_kept_state(const torch::optim::OptimizerParamState& object) {
  const plan::Part& part = piece_.tile();
  state::Member& member = context_.member(part);
  if (context_.traits.fixed_state) return;

  const auto all = state::find_state_tensors(object);
  const std::vector<bool> moving = state::which_move(all, piece_.alias(), /*loaded=*/false);
  auto& moved = member.record.moved;
  auto next = moved.begin();
  for (size_t i = 0; i < all.size(); ++i) {
    const state::FoundTensor& found = all[i];
    const auto place =
        std::find_if(next, moved.end(), [&](const auto& t) { return t.name == found.name; });
    if (place == moved.end()) {
      OFFLOAD_CHECK(!moving[i],
                    "an element-wise optimizer added a tensor to a state while its parameter was "
                    "stepped in tiles (",
                    member.label(), ", ", found.name,
                    "); make all state in the first step, or do not declare it element_wise");
      check_own_memory(member, found, found.tensor.numel() <= 1);
      continue;
    }
    state::StateTensor& tensor = *place;
    next = std::next(place);
    const bool formed = tensor.shaped ? found.tensor.sizes() == piece_.alias().sizes() &&
                                            found.tensor.dtype() == tensor.home.dtype()
                                      : tensor.fits(found.tensor);
    if (found.tensor.is_same(tensor.handle) && found.tensor.const_data_ptr() == tensor.lent &&
        formed && found.tensor.is_contiguous()) {
      continue;
    }
    // The base put another tensor in its place, or gave it other memory.
    if (lane_.slots.hold(found.tensor)) {
      check_own_memory(member, found, moving[i] && lies_in_a_view(found.tensor));
    } else {
      context_.registry.check_unshared(member, found, moving[i]);
      check_own_memory(member, found, moving[i]);
    }
    OFFLOAD_CHECK(formed,
                  "an element-wise optimizer replaced a state tensor by one of another form (",
                  member.label(), ", ", found.name, ": ", found.tensor.sizes(),
                  "); do not declare it element_wise, or keep type and shape");
    const auto item = static_cast<int64_t>(tensor.home.itemsize());
    if (tensor.shaped) {
      const at::Tensor flat = found.tensor.contiguous();
      bring_home(flat, tensor.host_data() + part.begin * item,
                 static_cast<size_t>((part.end - part.begin) * item));
    } else if (part.is_last_tile()) {
      bring_home(found.tensor, tensor.host_data(), tensor.bytes);
    }
    if (part.is_last_tile()) tensor.handle = found.tensor;
  }
}

bool PieceStep::lies_in_a_view(const at::Tensor& tensor) const {
  const state::MemoryRange range = state::range_of(tensor);
  return std::any_of(piece_.views.begin(), piece_.views.end(), [&](const BoundView& view) {
    const state::MemoryRange own = state::range_of(view.device);
    return own.begin <= range.begin && range.end <= own.end;
  });
}

void PieceStep::tile_made_state(const torch::optim::OptimizerParamState& object) {
  const plan::Part& part = piece_.tile();
  state::Member& member = context_.member(part);
  const int64_t length = part.end - part.begin;
  auto& making = context_.making;

  std::vector<state::FoundTensor> found;
  std::vector<at::Tensor> resident;
  auto all = state::find_state_tensors(object);
  const std::vector<bool> moving = state::which_move(all, piece_.alias(), /*loaded=*/false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (part.tile == 0) context_.registry.check_unshared(member, all[i], moving[i]);
    if (moving[i]) {
      found.push_back(std::move(all[i]));
    } else {
      check_own_memory(member, all[i], all[i].tensor.numel() <= 1);
      resident.push_back(all[i].tensor);
    }
  }
  if (part.tile == 0) {
    std::vector<size_t> bytes;
    for (const auto& f : found) {
      const int64_t numel = f.tensor.dim() == 1 ? member.param.numel() : f.tensor.numel();
      bytes.push_back(align_up(static_cast<size_t>(numel) * f.tensor.itemsize()));
    }
    context_.expect_homes(member, std::move(bytes));
    for (const auto& f : found) {
      const bool shaped =
          f.tensor.dim() == 1 && f.tensor.numel() == length && f.tensor.is_contiguous();
      OFFLOAD_CHECK(
          shaped || f.tensor.dim() == 0,
          "an element-wise optimizer made a state tensor that has neither the parameter's "
          "shape nor none (",
          member.label(), ", ", f.name, ": ", f.tensor.sizes(),
          "); do not declare it element_wise");
      making.moved.push_back(
          shaped ? context_.host.make_home(f, member.param.sizes(), member.param.strides(),
                                           member.param)
                 : context_.host.make_home(f, f.tensor.sizes(), f.tensor.strides(), member.param));
      making.moved.back().shaped = shaped;
    }
  }
  OFFLOAD_CHECK(found.size() == making.moved.size(),
                "tiles of one parameter got different numbers of state tensors (", member.label(),
                ": ", making.moved.size(), " and ", found.size(),
                "); do not declare the optimizer element_wise");
  for (size_t i = 0; i < found.size(); ++i) {
    state::StateTensor& tensor = making.moved[i];
    const auto item = static_cast<int64_t>(tensor.home.itemsize());
    if (tensor.shaped) {
      bring_home(found[i].tensor, tensor.host_data() + part.begin * item,
                 static_cast<size_t>(length * item));
    } else if (part.is_last_tile()) {
      bring_home(found[i].tensor, tensor.host_data(), tensor.bytes);
    }
    // Earlier tiles' tensors must go when their copies are done.
    tensor.handle = part.is_last_tile() ? found[i].tensor : at::Tensor();
  }
  if (!part.is_last_tile()) return;
  member.record.object = &object;
  member.record.moved = std::move(making.moved);
  member.record.resident = std::move(resident);
  ++member.record.version;
  member.stateless = false;
  context_.plan.forecast().learn(member);
}

}  // namespace optim_offload::step
