#include "bench/optimizers.h"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"

namespace optim_offload::bench {

namespace {

// In these models the matrices outside of the layers are the embedding and the head, which
// muon_param_groups() leaves to AdamW too.
bool is_muon_matrix(const ParameterSpec& parameter) {
  return parameter.cols != 0 && parameter.name.find("layers.") != std::string::npos;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(OptimizerKind kind,
                                                        const NamedParameters& parameters) {
  switch (kind) {
    case OptimizerKind::AdamW:
      return std::make_unique<torch::optim::AdamW>(parameters.values(),
                                                   torch::optim::AdamWOptions(1e-3));
    case OptimizerKind::SGD:
      return std::make_unique<torch::optim::SGD>(parameters.values(),
                                                 torch::optim::SGDOptions(1e-3).momentum(0.9));
    case OptimizerKind::FusedAdamW:
      return std::make_unique<FusedAdamW>(parameters.values(), torch::optim::AdamWOptions(1e-3));
    case OptimizerKind::Muon:
      return std::make_unique<Muon>(muon_param_groups(parameters, MuonOptions(1e-3)));
  }
  TORCH_CHECK(false, "[optim_offload] no optimizer of kind ", static_cast<int>(kind),
              "; add it to bench/optimizers.cpp");
}

int64_t state_bytes(OptimizerKind kind, const ModelSpec& spec, c10::ScalarType dtype) {
  int64_t elements = 0;
  for (const auto& parameter : spec.parameters) {
    const bool one_buffer =
        kind == OptimizerKind::SGD || (kind == OptimizerKind::Muon && is_muon_matrix(parameter));
    elements += (one_buffer ? 1 : 2) * parameter.numel();
  }
  return elements * static_cast<int64_t>(c10::elementSize(dtype));
}

}  // namespace optim_offload::bench
