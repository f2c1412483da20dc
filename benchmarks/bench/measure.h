#pragma once

#include <string>
#include <vector>

#include "bench/device.h"
#include "bench/model.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/timeline.h"

namespace optim_offload::bench {

/// What a mode is measured with.
struct Subject {
  const ModelSpec& spec;
  const NamedParameters& parameters;  ///< With gradients.
  OptimizerKind kind;
  Mode mode;
  LinkProbe& link;  ///< Of as many bytes as the state has; timed in turn with the steps.
};

/// Medians of `repeats` timings each of up, down and both.
LinkTimes measure_link(LinkProbe& link, int64_t repeats);

/// Times `subject` and counts its memory. The state must fit where the mode keeps it: else the
/// allocator's error comes through, with all memory given back. Limits are left for the caller.
/// Where `spans` is given and the mode is streamed, one further step is recorded there.
Row measure(const Subject& subject, const BenchOptions& options, Device& device,
            std::vector<Span>* spans = nullptr);

}  // namespace optim_offload::bench
