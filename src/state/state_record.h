#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "state/state_tensors.h"

namespace optim_offload::state {

/// Makes `handle`, and with it every handle that shares its TensorImpl, a tensor over the memory of
/// `target`. Does what `Tensor::set_data` does, without its way through the dispatcher, which costs
/// more than the rest of the work on a small tensor.
inline void point_at(const at::Tensor& handle, const at::Tensor& target) {
  c10::TensorImpl* impl = handle.unsafeGetTensorImpl();
  if (impl->autograd_meta() == nullptr) {
    impl->shallow_copy_from(target.getIntrusivePtr());
  } else {
    handle.set_data(target);  // has a gradient accumulator to reset
  }
}

/// A state tensor that rests on the host and visits the device.
struct StateTensor {
  std::string name;
  at::Tensor handle;    ///< Shares the TensorImpl in the optimizer's state.
  at::Tensor home;      ///< The host tensor, owner of its block of the arena.
  size_t bytes = 0;     ///< From the first element to the end of the last.
  bool shaped = false;  ///< Has sizes and strides of the parameter, so that tiles can cut it.
  const std::byte* lent = nullptr;  ///< Its device memory while the base has it; else null.

  std::byte* host_data() const { return static_cast<std::byte*>(home.mutable_data_ptr()); }
  bool is_home() const {
    return handle.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == home_storage;
  }

  /// Gives the tensor a home. The storage is remembered, as asking `home` for it would cost another
  /// cache line for each tensor and step.
  void settle_in(at::Tensor tensor) {
    home = std::move(tensor);
    home_storage = home.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  }

  /// Whether a tensor has the form of the home: of one lent to the base, that it was not changed
  /// in place.
  bool fits(const at::Tensor& tensor) const {
    return tensor.layout() == home.layout() && tensor.sizes() == home.sizes() &&
           tensor.strides() == home.strides() && tensor.dtype() == home.dtype();
  }

  /// Whether `found`, which has taken the place of a tensor like this one in the state, or is this
  /// one with other memory, can rest where this one did: the same name and form, and nobody else
  /// reads that memory.
  bool can_house(const FoundTensor& found) const;

  void go_home() {
    if (!is_home()) point_at(handle, home);
    lent = nullptr;
  }

  const c10::StorageImpl* home_storage = nullptr;
};

/// What is known of one parameter's state.
struct StateRecord {
  const torch::optim::OptimizerParamState* object = nullptr;  ///< Null where there is none yet.
  std::vector<StateTensor> moved;
  std::vector<at::Tensor> resident;  ///< Left where the base keeps them, such as CPU counters.
  bool incomplete = false;  ///< A tensor found no home and stays on the device; to be tried again.
  size_t version = 0;       ///< Advances whenever `moved` changes place or number.

  /// Whether the record still describes `current`: the same object, holding the same tensors.
  bool describes(const torch::optim::OptimizerParamState* current) const {
    if (object != current || incomplete) return false;
    for (const StateTensor& tensor : moved) {
      // One count is the state's; another is a user's, who may have put a new tensor in its place.
      if (tensor.handle.use_count() != 2) return false;
    }
    return true;
  }

  /// Aligned bytes that visit the device.
  size_t bytes() const;

  /// Starts anew, as for a parameter without state; the version advances.
  void forget();
};

/// Whether a tensor is of a kind that can rest on the host and visit the device.
bool can_visit(const at::Tensor& tensor);

/// Which of the tensors found in one state overlap another of them in memory.
std::vector<bool> which_overlap(const std::vector<FoundTensor>& found);

/// Which of the tensors found in the state of `param` are to rest on the host. Those are strided,
/// have storage, and lie on the parameter's device, or will: `loaded` says that they come from an
/// archive, whose tensors may lie anywhere. Tensors that share memory with each other, with the
/// parameter or with its gradient stay, as moving them would part them.
std::vector<bool> which_move(const std::vector<FoundTensor>& found, const at::Tensor& param,
                             bool loaded);

/// Whether sizes and strides are those of `param`.
bool is_shaped_like(const at::Tensor& tensor, const at::Tensor& param);

}  // namespace optim_offload::state
