#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "optim_offload/export.h"

namespace optim_offload {

/// Options of one group of Muon. Names and defaults are those of Python's `torch.optim.Muon`.
struct OPTIM_OFFLOAD_EXPORT MuonOptions
    : public torch::optim::OptimizerCloneableOptions<MuonOptions> {
  MuonOptions(double lr = 1e-3);  ///< The defaults, with this learning rate.
  TORCH_ARG(double, lr) = 1e-3;   ///< Learning rate, scaled as adjust_lr_fn says.
  /// Decoupled: the parameter shrinks by `lr * weight_decay` each step.
  TORCH_ARG(double, weight_decay) = 0.1;
  TORCH_ARG(double, momentum) = 0.95;  ///< Share of the running mean that stays.
  TORCH_ARG(bool, nesterov) = true;    ///< Blend the gradient in once more.
  typedef std::tuple<double, double, double> ns_coefficients_t;  ///< (a, b, c)
  /// Of the quintic polynomial that one Newton-Schulz iteration applies to the singular values.
  TORCH_ARG(ns_coefficients_t, ns_coefficients) = std::make_tuple(3.4445, -4.7750, 2.0315);
  /// Least norm that the update is divided by before the iteration.
  TORCH_ARG(double, eps) = 1e-7;
  /// Newton-Schulz iterations; below 100.
  TORCH_ARG(int64_t, ns_steps) = 5;
  /// How `lr` is scaled by the matrix's shape (rows, columns). "original":
  /// sqrt(max(1, rows / columns)); "match_rms_adamw", 0.2 sqrt(max(rows, columns)), with which the
  /// learning rate and weight decay of AdamW serve.
  TORCH_ARG(std::string, adjust_lr_fn) = "original";

  /// Step this group by AdamW instead (embeddings, heads, norms, biases), with the group's own
  /// `lr`, `weight_decay` and the two options below. Its state has exp_avg and exp_avg_sq.
  TORCH_ARG(bool, adamw) = false;
  typedef std::tuple<double, double> betas_t;                     ///< (beta1, beta2)
  TORCH_ARG(betas_t, adamw_betas) = std::make_tuple(0.9, 0.999);  ///< Of AdamW's means.
  TORCH_ARG(double, adamw_eps) = 1e-8;                            ///< Added to AdamW's denominator.

  /// Calls of step() so far, for every group alike; AdamW's bias correction counts with it. It is
  /// saved and loaded with the options.
  TORCH_ARG(int64_t, step) = 0;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;         ///< Reads all.
  void serialize(torch::serialize::OutputArchive& archive) const override;  ///< Writes all.
  friend OPTIM_OFFLOAD_EXPORT bool operator==(const MuonOptions& lhs,
                                              const MuonOptions& rhs);  ///< All equal.
  double get_lr() const override;                                       ///< For schedulers.
  void set_lr(const double lr) override;                                ///< For schedulers.
};

/// State of one parameter: `momentum_buffer` in Muon's groups, the other two in AdamW's.
struct OPTIM_OFFLOAD_EXPORT MuonParamState
    : public torch::optim::OptimizerCloneableParamState<MuonParamState> {
  TORCH_ARG(torch::Tensor, momentum_buffer);  ///< Running mean of gradients.
  TORCH_ARG(torch::Tensor, exp_avg);          ///< AdamW's mean of gradients.
  TORCH_ARG(torch::Tensor, exp_avg_sq);       ///< AdamW's mean of their squares.

 public:
  void serialize(torch::serialize::InputArchive& archive) override;  ///< Reads what is there.
  void serialize(torch::serialize::OutputArchive& archive) const override;  ///< Writes all.
  friend OPTIM_OFFLOAD_EXPORT bool operator==(const MuonParamState& lhs,
                                              const MuonParamState& rhs);  ///< Same values.
};

/// Muon (Keller Jordan, https://kellerjordan.github.io/posts/muon/): momentum whose update is made
/// orthogonal by a Newton-Schulz iteration in bfloat16. The same operations in the same order as
/// Python's `torch.optim.Muon`, with one departure: a bfloat16 momentum buffer is not scaled in
/// place where `nesterov` is off.
///
/// For the 2-D matrices of hidden layers; other parameters go to groups marked `adamw(true)`.
/// `muon_param_groups` makes both. Work is queued on the current stream.
class OPTIM_OFFLOAD_EXPORT Muon : public torch::optim::Optimizer {
 public:
  /// Throws `c10::Error` where options are out of range or no MuonOptions, or a Muon group has a
  /// parameter that is not 2-D.
  explicit Muon(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                MuonOptions defaults = {});
  explicit Muon(std::vector<torch::Tensor> params, MuonOptions defaults = {});  ///< One group.

  /// Keeps the group's own options, which some versions of `Optimizer::add_param_group` do not.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Throws on sparse gradients and complex parameters.
  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;  ///< All of both groups.
  void load(torch::serialize::InputArchive& archive) override;         ///< What save() wrote.
};

/// Names of what Muon should not step although it is a matrix: embeddings and heads.
inline constexpr const char* kMuonExcludedNames =
    R"((^|\.)([^.]*embed[^.]*|wte|wpe|lm_head|[^.]*head|output)\.[^.]*$)";

/// Sorts parameters that require a gradient into a Muon group (2-D, none of their names matching
/// `excluded_names`, an ECMAScript regular expression) and a group marked `adamw(true)` (all
/// else). A group that would be empty is left out. Tied tensors are taken once.
///
/// `adamw_options` are for the second group; without them it has `options` too, so that both share
/// learning rate and weight decay.
OPTIM_OFFLOAD_EXPORT std::vector<torch::optim::OptimizerParamGroup> muon_param_groups(
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
    const MuonOptions& options = {}, const std::optional<MuonOptions>& adamw_options = std::nullopt,
    const std::string& excluded_names = kMuonExcludedNames);

}  // namespace optim_offload
