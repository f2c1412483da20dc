// Regions of docs/adopting.md: an optimizer of one's own.
#include <memory>
#include <tuple>

#include <ATen/core/grad_mode.h>
#include <torch/optim/serialize.h>
#include <torch/utils.h>

#include "examples.h"
#include "model.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/traits.h"

namespace examples {

// [own-state]
struct LionOptions : torch::optim::OptimizerCloneableOptions<LionOptions> {
  LionOptions(double lr = 1e-4) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, beta1) = 0.9;
  TORCH_ARG(double, beta2) = 0.99;

 public:
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(beta1);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(beta2);
  }
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, beta1);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, beta2);
  }
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { this->lr(lr); }
};

struct LionParamState : torch::optim::OptimizerCloneableParamState<LionParamState> {
  TORCH_ARG(torch::Tensor, exp_avg);

 public:
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(exp_avg);
  }
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, exp_avg);
  }
};
// [own-state]

// [own-class]
class Lion : public torch::optim::Optimizer {
 public:
  explicit Lion(std::vector<torch::Tensor> params, LionOptions defaults = {})
      : Optimizer(std::move(params), std::make_unique<LionOptions>(defaults)) {}

  torch::Tensor step(LossClosure closure = nullptr) override {
    const torch::NoGradGuard no_grad;
    torch::Tensor loss;
    if (closure) {
      const at::AutoGradMode enable_grad(true);
      loss = closure();
    }
    for (auto& group : param_groups_) {
      const auto& options = static_cast<const LionOptions&>(group.options());
      for (auto& param : group.params()) {
        if (!param.grad().defined()) continue;
        auto& state = state_[param.unsafeGetTensorImpl()];
        if (!state) {
          auto fresh = std::make_unique<LionParamState>();
          fresh->exp_avg(torch::zeros_like(param));
          state = std::move(fresh);
        }
        torch::Tensor& mean = static_cast<LionParamState&>(*state).exp_avg();
        param.sub_(mean.lerp(param.grad(), 1 - options.beta1()).sign_(), options.lr());
        mean.lerp_(param.grad(), 1 - options.beta2());
      }
    }
    return loss;
  }
  void save(torch::serialize::OutputArchive& archive) const override {
    torch::optim::serialize<LionParamState, LionOptions>(archive, *this);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::optim::serialize<LionParamState, LionOptions>(archive, *this);
  }
};
// [own-class]

namespace {

/// Three steps; returns the parameters.
std::vector<torch::Tensor> train(Net& model, torch::optim::Optimizer& optimizer,
                                 const std::vector<Batch>& batches) {
  for (const Batch& batch : batches) {
    optimizer.zero_grad();
    loss_of(model, batch).backward();
    optimizer.step();
  }
  return model->parameters();
}

}  // namespace

void own_optimizer() {
  Net model;
  Net twin;
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : twin->named_parameters()) {
      item.value().copy_(model->named_parameters()[item.key()]);
    }
  }
  const auto batches = make_batches(3);
  // [own-traits]
  optim_offload::set_optimizer_traits<Lion>({.element_wise = true, .fixed_state = true});

  optim_offload::CPUOffloadOptimizer optimizer(
      std::make_unique<Lion>(model->parameters()), model->named_parameters(),
      optim_offload::OffloadOptions().chunked(true).stream(true).piece_bytes(1024));
  // [own-traits]
  Lion plain(twin->parameters());
  const auto wrapped = train(model, optimizer, batches);
  const auto expected = train(twin, plain, batches);
  for (size_t i = 0; i < wrapped.size(); ++i) {
    TORCH_CHECK(torch::equal(wrapped[i], expected[i]), "the wrapped optimizer gave other bits");
  }
}

}  // namespace examples
