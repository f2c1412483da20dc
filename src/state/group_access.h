#pragma once

#include <memory>

#include <torch/optim/optimizer.h>

namespace optim_offload::state {

/// Reaches the options object of a group, which LibTorch lets be replaced but not taken out.
class GroupAccess : private torch::optim::OptimizerParamGroup {
 public:
  static std::unique_ptr<torch::optim::OptimizerOptions>& options(
      torch::optim::OptimizerParamGroup& group) {
    return group.*(&GroupAccess::options_);
  }
};

}  // namespace optim_offload::state
