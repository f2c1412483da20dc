#pragma once

#include <cstdint>

#include "state/optimizer_data.h"

namespace optim_offload::state {

/// Changes whenever a parameter of the groups is changed in place.
inline uint64_t weights_version(const Groups& groups) {
  uint64_t version = 0;
  for (const auto& group : groups) {
    for (const at::Tensor& param : group.params()) {
      if (!param.is_inference()) version += param._version();
    }
  }
  return version;
}

}  // namespace optim_offload::state
