#pragma once

#include <map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace optim_offload::verify {

/// Copies of tensors that relate to each other as the originals do: whole storages are copied, each
/// once, so that tensors that share memory go on sharing it, with the same strides and offsets.
class Copies {
 public:
  at::Tensor of(const at::Tensor& tensor, c10::Device device);

 private:
  using Key = std::pair<const c10::StorageImpl*, c10::Device>;
  struct Less {
    bool operator()(const Key& a, const Key& b) const {
      if (a.first != b.first) return a.first < b.first;
      return std::pair(a.second.type(), a.second.index()) <
             std::pair(b.second.type(), b.second.index());
    }
  };
  std::map<Key, at::Tensor, Less> storages_;  // as bytes
};

/// Lets tensors, and whoever shares their TensorImpl, have other memory for the length of a scope.
class Detour {
 public:
  Detour() = default;
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  void point(const at::Tensor& handle, const at::Tensor& target);

 private:
  struct Entry {
    at::Tensor handle;
    at::Tensor original;
  };
  std::vector<Entry> entries_;
};

}  // namespace optim_offload::verify
