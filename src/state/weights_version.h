#pragma once

#include <cstdint>

#include "state/optimizer_data.h"

namespace optim_offload::state {

/// Changes whenever a parameter of the groups is changed in place, or gets other memory. Not where
/// it is changed through data(), which has a version of its own.
inline uint64_t weights_version(const Groups& groups) {
  uint64_t version = 0;
  for (const auto& group : groups) {
    for (const at::Tensor& param : group.params()) {
      if (!param.is_inference()) version += param._version();
      if (param.has_storage()) version += reinterpret_cast<uintptr_t>(param.const_data_ptr());
    }
  }
  return version;
}

}  // namespace optim_offload::state
