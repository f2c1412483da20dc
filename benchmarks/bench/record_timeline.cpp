#include "bench/record_timeline.h"

#include "step/timeline.h"

namespace optim_offload::bench {

std::vector<Span> record_step(CPUOffloadOptimizer& optimizer) {
  std::vector<step::TimelineEntry> entries;
  step::set_timeline(&entries);
  try {
    optimizer.step();
  } catch (...) {
    step::set_timeline(nullptr);
    throw;
  }
  step::set_timeline(nullptr);
  std::vector<Span> spans;
  spans.reserve(entries.size());
  for (const auto& entry : entries) {
    spans.push_back(
        {entry.lane, entry.name, entry.piece, entry.begin_us, entry.end_us, entry.bytes});
  }
  return spans;
}

}  // namespace optim_offload::bench
