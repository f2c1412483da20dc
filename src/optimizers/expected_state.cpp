#include "optimizers/expected_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "optim_offload/optimizers/muon.h"

namespace optim_offload {

std::optional<size_t> expected_state_tensors(const torch::optim::OptimizerOptions& options) {
  namespace optim = torch::optim;
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options)) {
    return adamw->amsgrad() ? 3 : 2;
  }
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options)) {
    return adam->amsgrad() ? 3 : 2;
  }
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options)) {
    return sgd->momentum() != 0 ? 1 : 0;
  }
  if (const auto* rmsprop = dynamic_cast<const optim::RMSpropOptions*>(&options)) {
    return 1 + (rmsprop->momentum() > 0 ? 1 : 0) + (rmsprop->centered() ? 1 : 0);
  }
  if (dynamic_cast<const optim::AdagradOptions*>(&options) != nullptr) return 1;
  if (const auto* muon = dynamic_cast<const MuonOptions*>(&options)) return muon->adamw() ? 2 : 1;
  return std::nullopt;
}

}  // namespace optim_offload
