#pragma once

#include <cstdint>

#include "bench/device.h"

namespace optim_offload::bench {

/// Times the link of the current CUDA device with raw copies on two streams, apart from the
/// library, so that the limit does not depend on what is measured against it.
LinkTimes measure_cuda_link(int64_t bytes, int64_t repeats);

}  // namespace optim_offload::bench
