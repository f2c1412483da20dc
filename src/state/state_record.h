#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

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

  std::byte* host_data() const { return static_cast<std::byte*>(home.mutable_data_ptr()); }
  bool is_home() const {
    return storage_of(handle) == storage_of(home) &&
           handle.storage_offset() == home.storage_offset();
  }
  void go_home() const {
    if (!is_home()) point_at(handle, home);
  }

 private:
  static const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  }
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
      if (tensor.handle.use_count() < 2) return false;  // the state let go of it
    }
    return true;
  }

  /// Aligned bytes that visit the device.
  size_t bytes() const;

  /// Starts anew, as for a parameter without state; the version advances.
  void forget();
};

/// Whether `tensor`, found in the state of `param`, is to rest on the host: it is strided, has
/// storage, and lies on the parameter's device (or will: `loaded` says that it comes from an
/// archive, whose tensors lie on the CPU whatever device they belong to).
bool moves(const std::string& name, const at::Tensor& tensor, const at::Tensor& param, bool loaded);

/// Whether sizes and strides are those of `param`.
bool is_shaped_like(const at::Tensor& tensor, const at::Tensor& param);

}  // namespace optim_offload::state
