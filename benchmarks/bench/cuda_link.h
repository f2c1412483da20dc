#pragma once

#include <cstdint>
#include <memory>

#include "bench/device.h"

namespace optim_offload::bench {

/// The link of the current CUDA device, timed with raw copies on two streams, apart from the
/// library, so that the limit does not depend on what is measured against it.
std::unique_ptr<LinkProbe> open_cuda_link(int64_t bytes);

}  // namespace optim_offload::bench
