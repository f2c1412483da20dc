#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "state/registry.h"

namespace optim_offload::state {

/// How much state parameters will get that have none yet. Taken from what others of the same group
/// and type have; before there are any, from the options of LibTorch's and this library's own
/// optimizers; else a guess that is rather too high.
class StateForecast {
 public:
  StateForecast() = default;
  StateForecast(const std::vector<Member>& members,
                const std::vector<torch::optim::OptimizerParamGroup>& groups);

  /// Learns from a member that has just got its state.
  void learn(const Member& member);

  /// Aligned bytes of each tensor to expect for `member`, in order.
  std::vector<size_t> tensor_bytes(const Member& member) const;

  /// Their sum.
  size_t bytes(const Member& member) const;

 private:
  /// Form of a parameter's state: item sizes of tensors shaped like it, and bytes of others (with
  /// an item size of 0).
  struct Form {
    size_t itemsize;
    size_t bytes;
  };
  using Key = std::pair<size_t, c10::ScalarType>;  // group, type

  std::map<Key, std::vector<Form>> forms_;
};

}  // namespace optim_offload::state
