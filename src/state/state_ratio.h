#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "state/registry.h"

namespace optim_offload::state {

/// How much state a parameter will get that has none yet: as much per element as others of its
/// group and type have, or else of any group.
class StateRatio {
 public:
  explicit StateRatio(const std::vector<Member>& members);

  /// Learns from a member that has just got its state.
  void learn(const Member& member);

  /// Aligned bytes to expect for `member`.
  size_t expected_bytes(const Member& member) const;

 private:
  using Key = std::pair<size_t, c10::ScalarType>;  // group, type
  std::map<Key, double> per_element_;
};

}  // namespace optim_offload::state
