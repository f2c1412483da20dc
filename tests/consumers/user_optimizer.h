#pragma once
// An optimizer and a state of a user's own, which the library has never seen.
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

struct UserOptions : torch::optim::OptimizerCloneableOptions<UserOptions> {
  explicit UserOptions(double rate = 0.5) : lr(rate) {}
  double lr;
  void serialize(torch::serialize::OutputArchive& archive) const override {
    archive.write("lr", c10::IValue(lr));
  }
  void serialize(torch::serialize::InputArchive& archive) override {
    c10::IValue value;
    archive.read("lr", value);
    lr = value.toDouble();
  }
};

struct UserState : torch::optim::OptimizerCloneableParamState<UserState> {
  at::Tensor sum;
  void serialize(torch::serialize::OutputArchive& archive) const override {
    archive.write("sum", sum, /*is_buffer=*/true);
  }
  void serialize(torch::serialize::InputArchive& archive) override {
    archive.read("sum", sum, /*is_buffer=*/true);
  }
};

/// Steps by the sum of all gradients so far.
class UserOptimizer : public torch::optim::Optimizer {
 public:
  explicit UserOptimizer(std::vector<at::Tensor> parameters)
      : Optimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                  std::make_unique<UserOptions>()) {}

  at::Tensor step(LossClosure closure = nullptr) override {
    at::Tensor loss;
    if (closure) loss = closure();
    const at::NoGradGuard no_grad;
    for (auto& group : param_groups_) {
      for (at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        auto& slot = state_[parameter.unsafeGetTensorImpl()];
        if (slot == nullptr) {
          auto fresh = std::make_unique<UserState>();
          fresh->sum = at::zeros_like(parameter);
          slot = std::move(fresh);
        }
        auto& sum = static_cast<UserState&>(*slot).sum;
        sum.add_(parameter.grad());
        parameter.sub_(sum, static_cast<UserOptions&>(group.options()).lr);
      }
    }
    return loss;
  }
  void save(torch::serialize::OutputArchive& archive) const override {
    torch::optim::serialize<UserState, UserOptions>(archive, *this);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::optim::serialize<UserState, UserOptions>(archive, *this);
  }
};
