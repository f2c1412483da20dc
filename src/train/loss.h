#pragma once

#include <vector>

#include <torch/types.h>

#include "train/data/reverse_task.h"
#include "train/model/transformer.h"

namespace optim_offload::train {

/// Runs forward and backward over the micro-batches of one step and leaves the gradients in the
/// parameters, added to what is there.
///
/// The loss is the cross entropy in nats, in fp32, averaged over all targets of all micro-batches
/// together: a mean by tokens, so that cutting a batch into micro-batches changes rounding only.
/// Returns it (0-dim, fp32, on the model's device, no gradient); the host does not wait for it.
torch::Tensor accumulate_gradients(const CausalLM& model, const std::vector<Batch>& micro_batches);

}  // namespace optim_offload::train
