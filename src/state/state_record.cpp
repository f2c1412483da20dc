#include "state/state_record.h"

#include "align.h"
#include "memory/arena.h"

namespace optim_offload::state {

size_t StateRecord::bytes() const {
  size_t bytes = 0;
  for (const StateTensor& tensor : moved) bytes += align_up(tensor.bytes);
  return bytes;
}

void StateRecord::forget() {
  const size_t next = version + 1;
  *this = StateRecord{};
  version = next;
}

bool StateTensor::can_house(const FoundTensor& found) const {
  return home.defined() && handle.use_count() == 1 && name == found.name && fits(found.tensor) &&
         home.storage().use_count() <= 2;
}

namespace {

bool moves(const FoundTensor& found, const at::Tensor& param, bool loaded) {
  const at::Tensor& tensor = found.tensor;
  if (tensor.layout() != at::kStrided || !tensor.has_storage() || tensor.numel() == 0) return false;
  if (tensor.is_conj() || tensor.is_neg() || tensor.is_quantized()) return false;
  if (tensor.is_alias_of(param)) return false;
  const at::Tensor& grad = param.grad();
  if (grad.defined() && grad.has_storage() && tensor.is_alias_of(grad)) return false;
  if (tensor.device() == param.device()) return true;
  // As Python's load_state_dict: all goes to the parameter's device but a scalar named step.
  if (loaded) return tensor.dim() > 0 || found.name != "step";
  // A state that was loaded before it was wrapped.
  return tensor.device().is_cpu() && tensor.dim() > 0 && tensor.sizes() == param.sizes();
}

/// Whether the memory of both, from first to last element, overlaps.
bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* a_data = static_cast<const std::byte*>(a.const_data_ptr());
  const auto* b_data = static_cast<const std::byte*>(b.const_data_ptr());
  return a_data < b_data + memory::extent_bytes(b) && b_data < a_data + memory::extent_bytes(a);
}

}  // namespace

std::vector<bool> which_move(const std::vector<FoundTensor>& found, const at::Tensor& param,
                             bool loaded) {
  std::vector<bool> moving;
  moving.reserve(found.size());
  for (const FoundTensor& f : found) moving.push_back(moves(f, param, loaded));
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t j = i + 1; j < found.size(); ++j) {
      if (!moving[i] && !moving[j]) continue;
      const at::Tensor& a = found[i].tensor;
      const at::Tensor& b = found[j].tensor;
      if (!a.has_storage() || !b.has_storage() || !a.is_alias_of(b)) continue;
      if (overlap(a, b)) moving[i] = moving[j] = false;
    }
  }
  return moving;
}

bool is_shaped_like(const at::Tensor& tensor, const at::Tensor& param) {
  return tensor.sizes() == param.sizes() && tensor.strides() == param.strides();
}

}  // namespace optim_offload::state
