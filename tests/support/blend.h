#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

namespace optim_offload::testing {

/// Options of a user's own optimizer, of a type that LibTorch does not know.
struct BlendOptions : torch::optim::OptimizerCloneableOptions<BlendOptions> {
  BlendOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, mix) = 0.75;
  TORCH_ARG(double, decay) = 0.9;
  TORCH_ARG(int64_t, group_steps) = 0;  ///< Kept by GroupCounterBlend alone.

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr_; }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// Two tensors of the parameter's shape, a counter in a 0-dim tensor on the device, one on the
/// host.
struct BlendParamState : torch::optim::OptimizerCloneableParamState<BlendParamState> {
  TORCH_ARG(torch::Tensor, fast);
  TORCH_ARG(torch::Tensor, slow);
  TORCH_ARG(torch::Tensor, count);
  TORCH_ARG(int64_t, steps) = 0;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// A user's own optimizer: a blend of the gradient and its running mean, scaled by a running mean
/// of squares. What is left to the subclasses is what the wrapper must not assume.
class Blend : public torch::optim::Optimizer {
 public:
  Blend(const std::vector<torch::optim::OptimizerParamGroup>& groups, BlendOptions defaults = {})
      : Optimizer(groups, std::make_unique<BlendOptions>(defaults)) {}

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  /// Before the groups, once a step.
  virtual void begin_step() {}
  /// Before a parameter that has a gradient.
  virtual void begin_parameter(const torch::Tensor& /*parameter*/) {}
  virtual void update(torch::Tensor parameter, const BlendOptions& options, BlendParamState& state);
  virtual std::unique_ptr<BlendParamState> make_state(const torch::Tensor& parameter);
};

/// Says by its traits that it works element by element, and keeps its tensors.
class ElementwiseBlend : public Blend {
 public:
  using Blend::Blend;
};

/// Scales a parameter's update by the norm of all its elements, so that no parameter can be cut.
class NormBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override;
};

/// Makes new state tensors in every step instead of writing to the old ones.
class ReplacingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override;
};

/// Counts steps in each group's options and lets the update depend on the count.
class GroupCounterBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void begin_step() override;
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override;
};

/// Stores in a group's options how many parameters it saw: what no cut of a group can keep.
class ParameterCountingBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void begin_step() override;
};

/// Throws c10::Error, "planned fault", before the parameter that is number `fault_at` (from
/// 1) in the order in which parameters are met since it was set; 0 never does.
class FaultyBlend : public Blend {
 public:
  using Blend::Blend;
  int fault_at = 0;

 protected:
  void begin_parameter(const torch::Tensor& parameter) override;
};

/// Registers the traits of the classes above; safe to call again.
void register_blend_traits();

}  // namespace optim_offload::testing
