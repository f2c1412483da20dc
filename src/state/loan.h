#pragma once

#include <utility>

#include <torch/optim/optimizer.h>

namespace optim_offload::state {

/// Lends groups and state of the wrapper to the base for the length of a scope. By swap: neither
/// objects nor options are copied, so all references into them stay good.
class Loan {
 public:
  Loan(torch::optim::Optimizer& wrapper, torch::optim::Optimizer& base)
      : wrapper_(wrapper), base_(base) {
    swap();
  }
  ~Loan() { swap(); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// Calls the user's closure with groups and state back at the wrapper, as it may use them (most
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
    wrapper_.param_groups().swap(base_.param_groups());
    wrapper_.state().swap(base_.state());
  }

  torch::optim::Optimizer& wrapper_;
  torch::optim::Optimizer& base_;
};

}  // namespace optim_offload::state
