#include "step/bound_piece.h"

#include <algorithm>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include "align.h"

namespace optim_offload::step {
namespace {

/// Appends one stretch of host memory to runs, to the last of them where it lies next to it.
size_t append(std::vector<Run>& runs, size_t& slot_bytes, std::byte* host, size_t bytes) {
  if (!runs.empty()) {
    Run& last = runs.back();
    if (last.host + align_up(last.bytes) == host) {
      const size_t offset = last.offset + align_up(last.bytes);
      last.bytes = align_up(last.bytes) + bytes;
      slot_bytes = align_up(offset + bytes);
      return offset;
    }
  }
  const size_t offset = slot_bytes;
  runs.push_back({host, offset, bytes});
  slot_bytes = align_up(offset + bytes);
  return offset;
}

void add_param(BoundPiece& piece, size_t group, at::Tensor param) {
  auto entry = std::find_if(piece.groups.begin(), piece.groups.end(),
                            [&](const GroupParams& g) { return g.group == group; });
  if (entry == piece.groups.end()) {
    piece.groups.push_back({group, {}});
    entry = std::prev(piece.groups.end());
  }
  entry->params.push_back(std::move(param));
}

void bind_whole(BoundPiece& piece, const plan::Part& part, const state::Member& member,
                bool visits) {
  add_param(piece, member.group, member.param);
  if (!visits) return;
  for (size_t t = 0; t < member.record.moved.size(); ++t) {
    const state::StateTensor& tensor = member.record.moved[t];
    const size_t offset = append(piece.up, piece.slot_bytes, tensor.host_data(), tensor.bytes);
    piece.views.push_back({part.param, t, offset, {}});
  }
}

void bind_tile(BoundPiece& piece, const plan::Part& part, const state::Member& member) {
  at::Tensor alias = flat_slice(member.param.detach(), part.begin, part.end - part.begin);
  alias.set_requires_grad(member.param.requires_grad());
  add_param(piece, member.group, std::move(alias));
  for (size_t t = 0; t < member.record.moved.size(); ++t) {
    const state::StateTensor& tensor = member.record.moved[t];
    const auto item = static_cast<int64_t>(tensor.home.itemsize());
    std::byte* host = tensor.host_data() + (tensor.shaped ? part.begin * item : 0);
    const size_t bytes =
        tensor.shaped ? static_cast<size_t>((part.end - part.begin) * item) : tensor.bytes;
    const size_t offset = piece.slot_bytes;
    piece.slot_bytes = align_up(offset + bytes);
    piece.up.push_back({host, offset, bytes});
    if (tensor.shaped || part.is_last_tile()) piece.down.push_back(piece.up.back());
    piece.views.push_back({part.param, t, offset, {}});
  }
}

}  // namespace

at::Tensor flat_slice(const at::Tensor& tensor, int64_t begin, int64_t length) {
  // Not a view for autograd: zero_grad() of the base detaches gradients in place.
  const at::AutoDispatchBelowADInplaceOrView plain;
  at::Tensor slice = tensor.as_strided({length}, {1}, tensor.storage_offset() + begin);
  // But what changes it changes the tensor, as graphs that have saved it must notice.
  if (!slice.is_inference() && !tensor.is_inference()) {
    slice.unsafeGetTensorImpl()->set_version_counter(
        tensor.unsafeGetTensorImpl()->version_counter());
  }
  return slice;
}

BoundPiece bind_piece(const plan::Piece& plan, const std::vector<state::Member>& members,
                      const std::vector<bool>& visits) {
  const at::NoGradGuard no_grad;
  BoundPiece piece;
  piece.plan = plan;
  for (const plan::Part& part : plan.parts) {
    const state::Member& member = members[part.param];
    if (part.is_tile()) {
      bind_tile(piece, part, member);
    } else {
      bind_whole(piece, part, member, visits[part.param]);
    }
  }
  if (plan.parts.empty()) {
    piece.name = "no parameters";
  } else {
    const plan::Part& first = plan.parts.front();
    piece.name = members[first.param].label();
    if (first.is_tile()) {
      piece.name +=
          " tile " + std::to_string(first.tile + 1) + " of " + std::to_string(first.tiles);
    } else if (plan.parts.size() > 1) {
      piece.name += " and " + std::to_string(plan.parts.size() - 1) + " more";
    }
    if (!first.is_tile()) piece.down = piece.up;
  }
  return piece;
}

void make_views(BoundPiece& piece, const std::vector<state::Member>& members,
                const memory::Slots& slots) {
  for (BoundView& view : piece.views) {
    const state::StateTensor& tensor = members[view.member].record.moved[view.tensor];
    if (piece.is_tile() && tensor.shaped) {
      const int64_t length = piece.tile().end - piece.tile().begin;
      view.device = slots.view(piece.slot, view.offset, {length}, {1}, tensor.home.options());
    } else {
      view.device = slots.view(piece.slot, view.offset, tensor.home.sizes(), tensor.home.strides(),
                               tensor.home.options());
    }
  }
}

}  // namespace optim_offload::step
