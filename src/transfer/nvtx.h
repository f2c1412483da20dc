#pragma once

// Named ranges on the host's time line of Nsight Systems; nothing at all unless the build sets
// OPTIM_OFFLOAD_NVTX.

#ifdef OPTIM_OFFLOAD_NVTX

#include <nvtx3/nvtx3.hpp>

namespace optim_offload::transfer {

struct NvtxDomain {
  static constexpr char const* name{"optim_offload"};
};

/// A range from construction to the end of the scope.
using NvtxRange = nvtx3::scoped_range_in<NvtxDomain>;

}  // namespace optim_offload::transfer

#define OFFLOAD_NVTX_RANGE(text) \
  const ::optim_offload::transfer::NvtxRange nvtx_range { text }

#else

#define OFFLOAD_NVTX_RANGE(text) static_cast<void>(0)

#endif
