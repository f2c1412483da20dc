#pragma once

#include <torch/optim/optimizer.h>

#include "state/optimizer_data.h"

namespace optim_offload::state {

/// Lends groups and state to the base, which has none of its own, for the length of a scope. By
/// swap: neither objects nor options are copied, so all references into them stay good.
class Loan {
 public:
  Loan(torch::optim::Optimizer& base, Groups& groups, StateMap& states)
      : base_(base), groups_(groups), states_(states) {
    swap();
  }
  ~Loan() { swap(); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// Calls the user's closure with groups and state back at their owner, as it may use them (most
  /// closures call zero_grad()), and lends them again.
  torch::Tensor call(const torch::optim::Optimizer::LossClosure& closure) {
    struct Lend {
      Loan& loan;
      ~Lend() { loan.swap(); }
    };
    swap();
    const Lend again{*this};
    return closure();
  }

 private:
  void swap() noexcept {
    base_.param_groups().swap(groups_);
    base_.state().swap(states_);
  }

  torch::optim::Optimizer& base_;
  Groups& groups_;
  StateMap& states_;
};

}  // namespace optim_offload::state
