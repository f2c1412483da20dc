#pragma once

#include <torch/types.h>

#include "support/blend.h"

namespace optim_offload::testing {

/// Keeps a running mean in one tensor; what happens to the other in step `n` is the subclass's.
class MemoryBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  virtual void touch(BlendParamState& state, int64_t n) = 0;
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    state.fast().mul_(0.9).add_(parameter.grad());
    state.steps(state.steps() + 1);
    touch(state, state.steps());
    parameter.sub_(state.fast(), 0.01);
  }
};

}  // namespace optim_offload::testing
