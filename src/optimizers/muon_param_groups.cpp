#include <c10/util/Exception.h>

#include <regex>
#include <unordered_map>

#include "optim_offload/optimizers/muon.h"

namespace optim_offload {

std::vector<torch::optim::OptimizerParamGroup> muon_param_groups(
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
    const MuonOptions& options, const std::optional<MuonOptions>& adamw_options,
    const std::string& excluded_names) {
  std::regex excluded;
  try {
    excluded.assign(excluded_names);
  } catch (const std::regex_error& error) {
    TORCH_CHECK(false, "[optim_offload] Muon: excluded_names = \"", excluded_names,
                "\" is no regular expression (", error.what(), "); mend it");
  }
  // A tied tensor is excluded if any of its names is, so that the names are gone through first.
  std::unordered_map<const void*, bool> hidden;
  std::vector<torch::Tensor> tensors;
  for (const auto& item : named_parameters) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    const bool matrix = tensor.dim() == 2 && !std::regex_search(item.key(), excluded);
    const auto [it, inserted] = hidden.emplace(tensor.unsafeGetTensorImpl(), matrix);
    if (inserted) {
      tensors.push_back(tensor);
    } else {
      it->second = it->second && matrix;
    }
  }
  std::vector<torch::Tensor> matrices;
  std::vector<torch::Tensor> others;
  for (torch::Tensor& tensor : tensors) {
    auto& list = hidden.at(tensor.unsafeGetTensorImpl()) ? matrices : others;
    list.push_back(std::move(tensor));
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  if (!matrices.empty()) {
    groups.emplace_back(std::move(matrices),
                        std::make_unique<MuonOptions>(MuonOptions(options).adamw(false)));
  }
  if (!others.empty()) {
    groups.emplace_back(
        std::move(others),
        std::make_unique<MuonOptions>(MuonOptions(adamw_options.value_or(options)).adamw(true)));
  }
  return groups;
}

}  // namespace optim_offload
