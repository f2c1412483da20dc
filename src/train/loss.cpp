#include "train/loss.h"

#include <c10/util/Exception.h>

namespace optim_offload::train {

torch::Tensor accumulate_gradients(const CausalLM& model, const std::vector<Batch>& micro_batches) {
  TORCH_CHECK(!micro_batches.empty(),
              "[optim_offload] a step of no micro-batches; give at least one");
  int64_t targets = 0;
  for (const auto& batch : micro_batches) targets += batch.target_count;

  const auto device = model.device();
  torch::Tensor total;
  for (const auto& batch : micro_batches) {
    const auto logits = model.forward(batch.tokens.to(device));
    const auto sum = at::cross_entropy_loss(
        logits.flatten(0, 1).to(torch::kFloat32), batch.targets.to(device).flatten(),
        /*weight=*/{}, at::Reduction::Sum, /*ignore_index=*/kNoTarget);
    const auto loss = sum / static_cast<double>(targets);
    loss.backward();
    total = total.defined() ? total + loss.detach() : loss.detach();
  }
  return total;
}

}  // namespace optim_offload::train
