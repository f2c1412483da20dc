#include "optim_offload/traits.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mutex>
#include <shared_mutex>
#include <typeindex>
#include <unordered_map>

#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"

namespace optim_offload {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::type_index, OptimizerTraits> traits;

  Registry() {
    constexpr OptimizerTraits element_wise{
        .element_wise = true, .fixed_state = true, .fixed_options = true};
    traits[typeid(torch::optim::Adagrad)] = element_wise;
    traits[typeid(torch::optim::Adam)] = element_wise;
    traits[typeid(torch::optim::AdamW)] = element_wise;
    traits[typeid(torch::optim::RMSprop)] = element_wise;
    traits[typeid(torch::optim::SGD)] = element_wise;
    traits[typeid(FusedAdamW)] = element_wise;
    traits[typeid(Muon)] = {.fixed_state = true};
    traits[typeid(torch::optim::LBFGS)] = {.couples_parameters = true};
  }
};

// Never destroyed: an optimizer in a static object may still be asked about at exit.
Registry& registry() {
  static Registry* const instance = new Registry();
  return *instance;
}

}  // namespace

void set_optimizer_traits(const std::type_info& type, OptimizerTraits traits) {
  const std::unique_lock lock(registry().mutex);
  registry().traits[type] = traits;
}

OptimizerTraits optimizer_traits(const torch::optim::Optimizer& optimizer) {
  const std::shared_lock lock(registry().mutex);
  const auto it = registry().traits.find(typeid(optimizer));
  return it == registry().traits.end() ? OptimizerTraits{} : it->second;
}

}  // namespace optim_offload
