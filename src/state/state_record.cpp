#include "state/state_record.h"

#include "align.h"
#include "state/memory_claims.h"

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
  const bool let_go = handle.use_count() == 1 || (handle.is_same(found.tensor) && !is_home());
  return home.defined() && let_go && name == found.name && fits(found.tensor) &&
         home.storage().use_count() <= (is_home() ? 2 : 1);  // the home, and a handle at home
}

namespace {

bool moves(const FoundTensor& found, const at::Tensor& param, bool loaded) {
  const at::Tensor& tensor = found.tensor;
  if (!can_visit(tensor) || tensor.is_alias_of(param)) return false;
  const at::Tensor& grad = param.grad();
  if (grad.defined() && grad.has_storage() && tensor.is_alias_of(grad)) return false;
  if (tensor.device() == param.device()) return true;
  // As Python's load_state_dict: all goes to the parameter's device but a scalar named step.
  if (loaded) return tensor.dim() > 0 || found.name != "step";
  // A state that was loaded before it was wrapped.
  return tensor.device().is_cpu() && tensor.dim() > 0 && tensor.sizes() == param.sizes();
}

}  // namespace

bool can_visit(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.has_storage() && tensor.numel() > 0 &&
         !tensor.is_conj() && !tensor.is_neg() && !tensor.is_quantized();
}

std::vector<bool> which_overlap(const std::vector<FoundTensor>& found) {
  std::vector<bool> overlapping(found.size(), false);
  for (size_t i = 0; i < found.size(); ++i) {
    const at::Tensor& a = found[i].tensor;
    if (!a.has_storage() || a.storage().use_count() == 1) continue;
    for (size_t j = i + 1; j < found.size(); ++j) {
      const at::Tensor& b = found[j].tensor;
      if (!b.has_storage() || !a.is_alias_of(b) || !overlap(range_of(a), range_of(b))) continue;
      overlapping[i] = overlapping[j] = true;
    }
  }
  return overlapping;
}

std::vector<bool> which_move(const std::vector<FoundTensor>& found, const at::Tensor& param,
                             bool loaded) {
  const std::vector<bool> overlapping = which_overlap(found);
  std::vector<bool> moving(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    moving[i] = !overlapping[i] && moves(found[i], param, loaded);
  }
  return moving;
}

bool is_shaped_like(const at::Tensor& tensor, const at::Tensor& param) {
  return tensor.sizes() == param.sizes() && tensor.strides() == param.strides();
}

}  // namespace optim_offload::state
