#pragma once

#include <typeinfo>

#include "optim_offload/export.h"

namespace torch::optim {
class Optimizer;
}

namespace optim_offload {

/// What CPUOffloadOptimizer may assume about an optimizer class. The default assumes nothing.
struct OPTIM_OFFLOAD_EXPORT OptimizerTraits {
  /// Element i of every state tensor and of the parameter depends only on element i of the
  /// parameter, its gradient and its state, and every state tensor either has the parameter's shape
  /// or holds counters that advance once per step. Then large parameters are cut into tiles.
  bool element_wise = false;

  /// Parameters influence each other inside step() (LBFGS; a norm over all gradients). Then the
  /// chunked modes are refused.
  bool couples_parameters = false;

  /// A parameter's state tensors are all made in its first step and never replaced by others.
  /// Then later steps need not search the state again.
  bool fixed_state = false;

  /// step() changes no option of a group (a counter there, say). Then options are neither copied
  /// for each piece of a chunked step nor compared after it.
  bool fixed_options = false;
};

/// Sets the traits of the class `type` (as `typeid` of an object gives it). Thread-safe.
OPTIM_OFFLOAD_EXPORT void set_optimizer_traits(const std::type_info& type, OptimizerTraits traits);

/// `set_optimizer_traits<MyOptimizer>({.element_wise = true})`.
template <typename T>
void set_optimizer_traits(OptimizerTraits traits) {
  set_optimizer_traits(typeid(T), traits);
}

/// The traits of `optimizer`'s most derived class: those set, else those known of LibTorch's and
/// this library's own optimizers, else the default. Thread-safe.
OPTIM_OFFLOAD_EXPORT OptimizerTraits optimizer_traits(const torch::optim::Optimizer& optimizer);

}  // namespace optim_offload
