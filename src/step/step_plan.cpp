#include "step/step_plan.h"

#include <algorithm>

#include "align.h"
#include "step/shared_params.h"

namespace optim_offload::step {
namespace {

bool is_dense(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense();
}

size_t hash_of(at::IntArrayRef strides) {
  size_t hash = strides.size();
  for (const int64_t stride : strides) hash = hash * 31 + static_cast<size_t>(stride);
  return hash;
}

bool can_be_cut(const state::Member& member) {
  // A tensor with elements, but of another layout, would be cut at other places.
  return std::all_of(member.record.moved.begin(), member.record.moved.end(),
                     [&](const auto& tensor) { return tensor.shaped || tensor.home.dim() == 0; }) &&
         std::all_of(member.record.resident.begin(), member.record.resident.end(),
                     [](const at::Tensor& tensor) { return tensor.numel() <= 1; });
}

}  // namespace

DeviceLane& StepPlan::lane(c10::Device device) {
  const auto known = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const auto& lane) { return lane->device == device; });
  if (known != lanes_.end()) return **known;
  lanes_.push_back(std::make_unique<DeviceLane>(device));
  return *lanes_.back();
}

const BoundPiece& StepPlan::piece(size_t index) const {
  auto lane = lanes_.begin();
  for (; index >= (*lane)->pieces.size(); ++lane) index -= (*lane)->pieces.size();
  return (*lane)->pieces[index];
}

std::vector<StepPlan::Signature> StepPlan::sign(const state::Registry& registry,
                                                bool all_gradients) const {
  std::vector<Signature> signature;
  signature.reserve(registry.members().size());
  for (const state::Member& member : registry.members()) {
    const at::Tensor& grad = member.param.grad();
    const bool strided = member.param.layout() == at::kStrided;  // else it has no such things
    Gradient kind = Gradient::None;
    if (grad.defined()) {
      kind = strided && is_dense(grad) && state::is_shaped_like(grad, member.param)
                 ? Gradient::Dense
                 : Gradient::Other;
    } else if (all_gradients) {
      kind = Gradient::Other;
    }
    signature.push_back({member.key(), strided ? member.param.const_data_ptr() : nullptr,
                         strided ? hash_of(member.param.strides()) : 0, member.record.version, kind,
                         member.stateless});
  }
  return signature;
}

plan::ParamSize StepPlan::size_of(const state::Member& member, const state::StateForecast& forecast,
                                  Gradient gradient) {
  plan::ParamSize size;
  size.numel = member.param.numel();
  if (gradient == Gradient::None || member.stateless || size.numel == 0) return size;
  if (member.record.object != nullptr) {
    size.state_bytes = member.record.bytes();
  } else {
    size.state_bytes = forecast.bytes(member);
  }
  size.tileable = options_.chunked() && traits_.element_wise && gradient == Gradient::Dense &&
                  is_dense(member.param) && can_be_cut(member) &&
                  lane(member.device).link != nullptr;
  return size;
}

void StepPlan::update(state::Registry& registry,
                      const std::vector<torch::optim::OptimizerParamGroup>& groups,
                      bool all_gradients) {
  auto signature = sign(registry, all_gradients);
  if (registry_version_ == registry.version() && signature == signature_) return;
  signature_.clear();  // nothing is kept if what follows throws

  forecast_ = state::StateForecast(registry.members(), groups);
  for (state::Member& member : registry.members()) {
    // A parameter may have got another layout since its state was made.
    for (auto& tensor : member.record.moved) {
      tensor.shaped = state::is_shaped_like(tensor.home, member.param);
    }
  }
  std::vector<plan::ParamSize> sizes;
  std::vector<bool> visits;  // whether a parameter's state comes to the device
  sizes.reserve(signature.size());
  for (size_t i = 0; i < signature.size(); ++i) {
    sizes.push_back(size_of(registry.members()[i], forecast_, signature[i].gradient));
    visits.push_back(signature[i].gradient != Gradient::None &&
                     lane(registry.members()[i].device).link != nullptr);
  }
  bind(registry,
       plan::plan_pieces(registry.chunks(), sizes, static_cast<size_t>(options_.piece_bytes())),
       visits);
  if (options_.chunked()) {
    check_shared_params(registry.members(), stepping_order(registry.members(), signature));
  }
  signature_ = std::move(signature);
  registry_version_ = registry.version();
}

std::vector<size_t> StepPlan::stepping_order(const std::vector<state::Member>& members,
                                             const std::vector<Signature>& signature) const {
  std::vector<size_t> order;
  for (const auto& lane : lanes_) {
    for (const BoundPiece& piece : lane->pieces) {
      const auto first = static_cast<ptrdiff_t>(order.size());
      for (const plan::Part& part : piece.plan.parts) {
        const bool stepped = signature[part.param].gradient != Gradient::None;
        if (part.tile == 0 && stepped) order.push_back(part.param);
      }
      std::stable_sort(order.begin() + first, order.end(),
                       [&](size_t a, size_t b) { return members[a].group < members[b].group; });
    }
  }
  return order;
}

void StepPlan::bind(const state::Registry& registry, const std::vector<plan::Piece>& pieces,
                    const std::vector<bool>& visits) {
  const auto& members = registry.members();
  for (auto& lane : lanes_) lane->pieces.clear();
  piece_count_ = tile_count_ = largest_bytes_ = 0;
  oversize_.clear();

  for (const plan::Piece& plan : pieces) {
    BoundPiece piece = bind_piece(plan, members, visits);
    auto& siblings = lane(plan.device).pieces;
    const size_t rank = siblings.size();
    piece.slot = !options_.chunked() ? rank : options_.stream() ? rank % options_.slots() : 0;
    // Where state rests on the device itself, no piece takes room.
    if (lane(plan.device).link != nullptr && plan.bytes > largest_bytes_) {
      largest_bytes_ = plan.bytes;
      const bool above = plan.bytes > static_cast<size_t>(options_.piece_bytes());
      if (above) oversize_ = members[plan.parts.front().param].label();
    }
    if (piece.is_tile()) ++tile_count_;
    siblings.push_back(std::move(piece));
  }

  for (auto& lane : lanes_) {
    std::vector<size_t> sizes;
    for (const BoundPiece& piece : lane->pieces) {
      if (piece.slot >= sizes.size()) sizes.resize(piece.slot + 1, 0);
      sizes[piece.slot] = std::max(sizes[piece.slot], piece.slot_bytes);
    }
    lane->slots.resize(lane->link == nullptr ? std::vector<size_t>{} : sizes);
    for (BoundPiece& piece : lane->pieces) {
      piece.index = piece_count_++;
      make_views(piece, members, lane->slots);
    }
  }

  order_.clear();
  for (const auto& lane : lanes_) {
    for (const BoundPiece& piece : lane->pieces) {
      for (const plan::Part& part : piece.plan.parts) {
        if (part.tile == 0) order_.push_back(part.param);
      }
    }
  }
  last_piece_.assign(registry.group_count(), piece_count_ == 0 ? 0 : piece_count_ - 1);
  for (const auto& lane : lanes_) {
    for (const BoundPiece& piece : lane->pieces) {
      for (const GroupParams& group : piece.groups) last_piece_[group.group] = piece.index;
    }
  }
}

}  // namespace optim_offload::step
