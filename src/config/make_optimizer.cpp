#include <c10/util/Exception.h>

#include <unordered_set>

#include "optim_offload/config.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/optimizers/fused_adamw.h"

namespace optim_offload {
namespace {

using NamedParameters = torch::OrderedDict<std::string, torch::Tensor>;

std::vector<torch::Tensor> trainable(const NamedParameters& named_parameters) {
  std::vector<torch::Tensor> out;
  std::unordered_set<const void*> seen;
  for (const auto& item : named_parameters) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) out.push_back(tensor);
  }
  TORCH_CHECK(!out.empty(), "[optim_offload] none of the ", named_parameters.size(),
              " named parameters requires a gradient; unfreeze some, or pass the whole module's "
              "named_parameters()");
  return out;
}

template <typename Optimizer, typename Options>
std::unique_ptr<torch::optim::Optimizer> make(const OptimizerConfig& config,
                                              const NamedParameters& named_parameters) {
  const auto* options = std::get_if<Options>(&config.hyper_parameters);
  TORCH_CHECK(options, "[optim_offload] the config's hyper_parameters are not those of type \"",
              config.type, "\"; set both together");
  return std::make_unique<Optimizer>(trainable(named_parameters), *options);
}

std::unique_ptr<torch::optim::Optimizer> make_muon(const OptimizerConfig& config,
                                                   const NamedParameters& named_parameters) {
  const auto* options = std::get_if<MuonOptions>(&config.hyper_parameters);
  TORCH_CHECK(options, "[optim_offload] the config's hyper_parameters are not those of type \"",
              config.type, "\"; set both together");
  trainable(named_parameters);  // For its check.
  return std::make_unique<Muon>(muon_param_groups(named_parameters, *options, config.muon_adamw),
                                *options);
}

std::unique_ptr<torch::optim::Optimizer> make_base(const OptimizerConfig& config,
                                                   const NamedParameters& named_parameters) {
  namespace optim = torch::optim;
  const std::string& type = config.type;
  if (type == "sgd") return make<optim::SGD, optim::SGDOptions>(config, named_parameters);
  if (type == "adam") return make<optim::Adam, optim::AdamOptions>(config, named_parameters);
  if (type == "adamw") return make<optim::AdamW, optim::AdamWOptions>(config, named_parameters);
  if (type == "fused_adamw") return make<FusedAdamW, optim::AdamWOptions>(config, named_parameters);
  if (type == "rmsprop") {
    return make<optim::RMSprop, optim::RMSpropOptions>(config, named_parameters);
  }
  if (type == "adagrad") {
    return make<optim::Adagrad, optim::AdagradOptions>(config, named_parameters);
  }
  if (type == "lbfgs") return make<optim::LBFGS, optim::LBFGSOptions>(config, named_parameters);
  if (type == "muon") return make_muon(config, named_parameters);
  TORCH_CHECK(false, "[optim_offload] there is no optimizer type \"", type,
              "\"; take sgd, adam, adamw, fused_adamw, rmsprop, adagrad, muon or lbfgs");
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerConfig& config,
                                                        const NamedParameters& named_parameters) {
  auto base = make_base(config, named_parameters);
  if (!config.offload) return base;
  return std::make_unique<CPUOffloadOptimizer>(std::move(base), named_parameters, *config.offload);
}

}  // namespace optim_offload
