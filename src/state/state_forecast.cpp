#include "state/state_forecast.h"

#include <algorithm>
#include <numeric>

#include "align.h"
#include "optimizers/expected_state.h"

namespace optim_offload::state {
namespace {

// Three fp32 tensors, the most that LibTorch's optimizers keep: rather too many pieces in the first
// step than too large ones.
constexpr size_t kGuessedTensors = 3;
constexpr size_t kGuessedItem = 4;

}  // namespace

StateForecast::StateForecast(const std::vector<Member>& members,
                             const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  for (const Member& member : members) {
    if (member.record.object != nullptr) learn(member);
  }
  for (const Member& member : members) {
    const Key key{member.group, member.param.scalar_type()};
    if (forms_.contains(key) || !groups[member.group].has_options()) continue;
    const auto expected = expected_state_tensors(groups[member.group].options());
    if (!expected) continue;
    forms_[key].assign(*expected, Form{member.param.itemsize(), 0});
  }
}

void StateForecast::learn(const Member& member) {
  if (member.param.numel() == 0) return;  // says nothing about others
  std::vector<Form> form;
  for (const StateTensor& tensor : member.record.moved) {
    const bool per_element = tensor.home.numel() == member.param.numel();
    form.push_back(per_element ? Form{tensor.home.itemsize(), 0} : Form{0, tensor.bytes});
  }
  forms_[{member.group, member.param.scalar_type()}] = std::move(form);
}

std::vector<size_t> StateForecast::tensor_bytes(const Member& member) const {
  const auto numel = static_cast<size_t>(member.param.numel());
  std::vector<size_t> bytes;
  const auto known = forms_.find({member.group, member.param.scalar_type()});
  if (known == forms_.end()) {
    const size_t item = std::max(kGuessedItem, member.param.itemsize());
    bytes.assign(kGuessedTensors, align_up(numel * item));
    return bytes;
  }
  for (const Form& form : known->second)
    bytes.push_back(align_up(form.bytes + numel * form.itemsize));
  return bytes;
}

size_t StateForecast::bytes(const Member& member) const {
  const auto each = tensor_bytes(member);
  return std::accumulate(each.begin(), each.end(), size_t{0});
}

}  // namespace optim_offload::state
