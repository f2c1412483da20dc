#include "verify/copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "state/state_record.h"

namespace optim_offload::verify {

at::Tensor Copies::of(const at::Tensor& tensor, c10::Device device) {
  const at::NoGradGuard no_grad;
  if (tensor.layout() != at::kStrided || !tensor.has_storage() || tensor.is_quantized()) {
    return tensor.detach().to(device, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  const c10::Storage& storage = tensor.storage();
  const auto bytes = at::TensorOptions().dtype(at::kByte);
  at::Tensor& copy = storages_[{storage.unsafeGetStorageImpl(), device}];
  if (!copy.defined()) {
    const auto size = static_cast<int64_t>(storage.nbytes());
    const at::Tensor whole =
        at::empty({0}, bytes.device(tensor.device())).set_(storage, 0, {size}, {1});
    copy = at::empty({size}, bytes.device(device)).copy_(whole);
  }
  at::Tensor same = at::empty({0}, tensor.options().device(device).requires_grad(false));
  same.set_(copy.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  same._set_conj(tensor.is_conj());
  same._set_neg(tensor.is_neg());
  return same;
}

void Detour::point(const at::Tensor& handle, const at::Tensor& target) {
  entries_.push_back({handle, handle.detach()});
  state::point_at(handle, target);
}

Detour::~Detour() {
  for (const Entry& entry : entries_) state::point_at(entry.handle, entry.original);
}

}  // namespace optim_offload::verify
