#include "bench/optimizers.h"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace optim_offload::bench {

namespace {

std::vector<torch::Tensor> tensors_of(const NamedParameters& parameters) {
  return parameters.values();
}

}  // namespace

bool is_muon_matrix(const std::string& name, int64_t dimensions) {
  return dimensions == 2 && name.find("layers.") != std::string::npos;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(OptimizerKind kind,
                                                        const NamedParameters& parameters) {
  switch (kind) {
    case OptimizerKind::AdamW:
      return std::make_unique<torch::optim::AdamW>(tensors_of(parameters),
                                                   torch::optim::AdamWOptions(1e-3));
    case OptimizerKind::SGD:
      return std::make_unique<torch::optim::SGD>(tensors_of(parameters),
                                                 torch::optim::SGDOptions(1e-3).momentum(0.9));
    case OptimizerKind::FusedAdamW:
    case OptimizerKind::Muon:
      break;
  }
  TORCH_CHECK(false, "[optim_offload] ", to_string(kind), " is not built");
}

int64_t state_bytes(OptimizerKind kind, const ModelSpec& spec, c10::ScalarType dtype) {
  int64_t elements = 0;
  for (const auto& parameter : spec.parameters) {
    const bool one_buffer =
        kind == OptimizerKind::SGD ||
        (kind == OptimizerKind::Muon && is_muon_matrix(parameter.name, parameter.cols == 0 ? 1 : 2));
    elements += (one_buffer ? 1 : 2) * parameter.numel();
  }
  return elements * static_cast<int64_t>(c10::elementSize(dtype));
}

}  // namespace optim_offload::bench
