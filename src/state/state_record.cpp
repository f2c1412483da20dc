#include "state/state_record.h"

#include "align.h"

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

bool moves(const std::string& name, const at::Tensor& tensor, const at::Tensor& param,
           bool loaded) {
  if (tensor.layout() != at::kStrided || !tensor.has_storage() || tensor.numel() == 0) return false;
  if (tensor.is_conj() || tensor.is_neg() || tensor.is_quantized()) return false;
  if (tensor.device() == param.device()) return true;
  if (!tensor.device().is_cpu()) return false;
  // As Python's load_state_dict: all goes to the parameter's device but a scalar named step.
  if (loaded) return tensor.dim() > 0 || name != "step";
  // A state that was loaded before it was wrapped.
  return tensor.dim() > 0 && tensor.sizes() == param.sizes();
}

bool is_shaped_like(const at::Tensor& tensor, const at::Tensor& param) {
  return tensor.sizes() == param.sizes() && tensor.strides() == param.strides();
}

}  // namespace optim_offload::state
