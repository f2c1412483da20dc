#include "bench/record_timeline.h"

namespace optim_offload::bench {

std::vector<Span> record_step(CPUOffloadOptimizer& optimizer) {
  optimizer.step();
  return {};
}

}  // namespace optim_offload::bench
