#pragma once

#include <cstdint>
#include <memory>

#include <torch/optim/optimizer.h>

#include "bench/model.h"
#include "bench/options.h"

namespace optim_offload::bench {

/// The plain optimizer of `kind` over all of `parameters`. SGD has momentum, so that it has state;
/// Muon steps the layers' matrices and leaves embedding, head and norms to its AdamW.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(OptimizerKind kind,
                                                        const NamedParameters& parameters);

/// Bytes of state that this optimizer keeps on the device for `spec`.
int64_t state_bytes(OptimizerKind kind, const ModelSpec& spec, c10::ScalarType dtype);

}  // namespace optim_offload::bench
