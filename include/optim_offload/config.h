#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/ordered_dict.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "optim_offload/export.h"
#include "optim_offload/optimizers/muon.h"
#include "optim_offload/options.h"

namespace optim_offload {

/// Which optimizer, with which hyper-parameters, and whether its state is offloaded.
///
///     [trainer.model]
///     optim_cpu_offload = true            # the state rests in host memory
///     optim_cpu_offload_chunked = true    # needs optim_cpu_offload
///     optim_cpu_offload_stream = true     # needs optim_cpu_offload_chunked
///     optim_cpu_offload_pin_memory = true # or false, or "required"
///     optim_cpu_offload_piece_mib = 40
///     optim_cpu_offload_slots = 3
///     optim_cpu_offload_layer_pattern = 'layers\.(\d+)\.'
///     optim_cpu_offload_verify = 0        # compare so many steps with the plain optimizer
///
///     [trainer.optim]
///     type = "adamw"                      # sgd adam adamw fused_adamw rmsprop adagrad muon lbfgs
///     lr = 3e-4
struct OPTIM_OFFLOAD_EXPORT OptimizerConfig {
  /// As in the file.
  std::string type = "adamw";

  /// The hyper-parameters; which alternative belongs to which `type` is fixed (`adamw` and
  /// `fused_adamw` share AdamWOptions).
  std::variant<torch::optim::SGDOptions, torch::optim::AdamOptions, torch::optim::AdamWOptions,
               torch::optim::RMSpropOptions, torch::optim::AdagradOptions,
               torch::optim::LBFGSOptions, MuonOptions>
      hyper_parameters = torch::optim::AdamWOptions();

  /// Muon only: what steps the parameters that are no hidden matrices (marked `adamw(true)`).
  MuonOptions muon_adamw = MuonOptions();

  /// Set: wrap the optimizer in a CPUOffloadOptimizer with these options.
  std::optional<OffloadOptions> offload;

  /// The learning rate of the main group; what schedulers start from.
  double lr() const;
};

/// Reads `[trainer.model] optim_*` and `[trainer.optim]` of a TOML file; other sections and keys
/// are left alone. Throws `c10::Error` that names file, line, key, value and the valid choices on
/// unknown keys, wrong types, values out of range and combinations that make no sense.
OPTIM_OFFLOAD_EXPORT OptimizerConfig load_optimizer_config(const std::filesystem::path& path);

/// The same of text; `source_name` stands in messages where the file's name would.
OPTIM_OFFLOAD_EXPORT OptimizerConfig
parse_optimizer_config(std::string_view text, const std::string& source_name = "<config>");

/// Makes the optimizer of `config` over the parameters that require a gradient, wrapped in a
/// CPUOffloadOptimizer where the config says so:
///
///     auto optimizer = make_optimizer(load_optimizer_config("train.toml"),
///                                     model->named_parameters());
///
/// A tensor under two names (tied weights) is taken once, under its first name. Throws `c10::Error`
/// where no parameter requires a gradient.
OPTIM_OFFLOAD_EXPORT std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const OptimizerConfig& config,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters);

}  // namespace optim_offload
