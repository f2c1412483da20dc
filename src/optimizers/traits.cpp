#include "optim_offload/traits.h"

#include <map>
#include <mutex>
#include <optional>
#include <typeindex>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace optim_offload {
namespace {
std::mutex mutex;
std::map<std::type_index, OptimizerTraits>& table() {
  static auto* t = new std::map<std::type_index, OptimizerTraits>{
      {typeid(torch::optim::Adam), {true, false, true}},   {typeid(torch::optim::AdamW), {true, false, true}},
      {typeid(torch::optim::SGD), {true, false, true}},    {typeid(torch::optim::RMSprop), {true, false, true}},
      {typeid(torch::optim::Adagrad), {true, false, true}}, {typeid(torch::optim::LBFGS), {false, true, false}}};
  return *t;
}
}  // namespace
void set_optimizer_traits(const std::type_info& type, OptimizerTraits traits) {
  const std::lock_guard lock(mutex);
  table()[type] = traits;
}
OptimizerTraits optimizer_traits(const torch::optim::Optimizer& optimizer) {
  const std::lock_guard lock(mutex);
  const auto it = table().find(typeid(optimizer));
  return it == table().end() ? OptimizerTraits{} : it->second;
}
}  // namespace optim_offload
