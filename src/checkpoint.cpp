#include <exception>
#include <new>
#include <utility>
#include <vector>

#include <torch/serialize/archive.h>

#include "error.h"
#include "offload_impl.h"
#include "state/loan.h"
#include "state/state_tensors.h"

namespace optim_offload {

void CPUOffloadOptimizer::save(torch::serialize::OutputArchive& archive) const {
  // The base's save() reads groups and state of its own; they are lent, and come back unchanged.
  impl().check_at_home("save()");
  auto& self = const_cast<CPUOffloadOptimizer&>(*this);
  const state::Loan loan(*impl().base, self.param_groups_, self.state_);
  impl().base->save(archive);
}

void CPUOffloadOptimizer::load(torch::serialize::InputArchive& archive) {
  Impl& self = impl();
  self.check_between_steps("load()");
  self.registry.refresh(param_groups_);
  self.rehearse_load(archive, param_groups_);
  {
    const state::Loan loan(*self.base, param_groups_, state_);
    self.base->load(archive);
  }
  self.loaded = true;
  self.settle(state_);
}

void CPUOffloadOptimizer::Impl::rehearse_load(
    torch::serialize::InputArchive& archive,
    std::vector<torch::optim::OptimizerParamGroup> groups) {
  groups.swap(base->param_groups());
  try {
    base->load(archive);
    for (const state::Member& member : registry.members()) {
      const auto entry = base->state().find(member.param.unsafeGetTensorImpl());
      if (entry == base->state().end() || !traits.element_wise) continue;
      for (const auto& found : state::find_state_tensors(*entry->second)) {
        OFFLOAD_CHECK(found.tensor.numel() == 1 || found.tensor.layout() != at::kStrided ||
                          found.tensor.sizes() == member.param.sizes(),
                      "the checkpoint's ", found.name, " does not fit parameter ", member.label(),
                      " (shapes ", found.tensor.sizes(), " and ", member.param.sizes(),
                      "); it belongs to another model");
      }
    }
  } catch (...) {
    groups.swap(base->param_groups());
    base->state().clear();
    try {
      throw;
    } catch (c10::Error& error) {
      error.add_context(
          "[optim_offload] load() failed; groups, options and state are as before it. Check "
          "that the checkpoint is whole and was written by the same kind of optimizer "
          "over the same groups");
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // LibTorch's reader has errors of several classes.
      OFFLOAD_CHECK(false, "load() failed (", message_of(error),
                    "); groups, options and state are as before it. Check that the checkpoint is "
                    "whole and was written by the same kind of optimizer over the same groups");
    }
  }
  groups.swap(base->param_groups());
  base->state().clear();
}

}  // namespace optim_offload
