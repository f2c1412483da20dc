#pragma once

#include <vector>

#include "bench/timeline.h"
#include "optim_offload/cpu_offload_optimizer.h"

namespace optim_offload::bench {

/// Takes one step of `optimizer` and returns what its lanes did, with times from CUDA events; empty
/// where the library records none. The only place that knows the library's hook.
std::vector<Span> record_step(CPUOffloadOptimizer& optimizer);

}  // namespace optim_offload::bench
