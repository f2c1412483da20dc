#include "optimizers/add_group.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <typeinfo>

namespace optim_offload {
namespace {

void keep_options(torch::optim::OptimizerParamGroup& added,
                  const torch::optim::OptimizerParamGroup& given) {
  // LibTorch's merge of its own types is its contract with its users: leave those alone.
  if (given.has_options() && !is_libtorch_options(given.options())) {
    added.set_options(given.options().clone());
  }
}

}  // namespace

bool is_libtorch_options(const torch::optim::OptimizerOptions& options) {
  const std::type_info& type = typeid(options);
  return type == typeid(torch::optim::AdagradOptions) ||
         type == typeid(torch::optim::AdamOptions) || type == typeid(torch::optim::AdamWOptions) ||
         type == typeid(torch::optim::LBFGSOptions) ||
         type == typeid(torch::optim::RMSpropOptions) || type == typeid(torch::optim::SGDOptions);
}

void add_group_keeping_options(torch::optim::Optimizer& optimizer,
                               const torch::optim::OptimizerParamGroup& group) {
  optimizer.add_param_group(group);
  keep_options(optimizer.param_groups().back(), group);
}

void keep_group_options(torch::optim::Optimizer& optimizer,
                        const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) keep_options(optimizer.param_groups()[i], groups[i]);
}

}  // namespace optim_offload
