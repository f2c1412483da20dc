#pragma once

#include <string>
#include <vector>

#include "bench/device.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/timeline.h"

namespace optim_offload::bench {

/// A run and the streamed step that was recorded in it, if one was.
struct RunResult {
  Report report;
  std::vector<Span> spans;
  std::string spans_of;  ///< Model and optimizer of that step.
};

/// Checks all modes against the plain optimizer, then measures all models. Tells of its progress on
/// stderr. Throws `c10::Error` where a check fails: then nothing was measured.
RunResult run(const BenchOptions& options, Device& device);

/// Gives `rows`, all of one model and optimizer, their limits, each by the link as it was between
/// its own steps. `resident_s` is the plain optimizer's step on the device; without it only the
/// streamed mode has a limit.
void set_limits(std::vector<Row>& rows, std::optional<double> resident_s);

}  // namespace optim_offload::bench
