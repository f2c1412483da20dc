#include "state/state_ratio.h"

#include <algorithm>

#include "align.h"

namespace optim_offload::state {
namespace {

// Three fp32 tensors per element, the most that LibTorch's optimizers keep: rather too many pieces
// in the first step than too large ones.
constexpr size_t kGuessedTensors = 3;
constexpr size_t kGuessedItem = 4;

}  // namespace

StateRatio::StateRatio(const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (member.record.object != nullptr) learn(member);
  }
}

void StateRatio::learn(const Member& member) {
  const int64_t numel = member.param.numel();
  if (numel == 0) return;
  size_t bytes = 0;
  for (const StateTensor& tensor : member.record.moved) bytes += tensor.bytes;
  double& known = per_element_[{member.group, member.param.scalar_type()}];
  known = std::max(known, static_cast<double>(bytes) / static_cast<double>(numel));
}

size_t StateRatio::expected_bytes(const Member& member) const {
  const auto numel = static_cast<double>(member.param.numel());
  const auto known = per_element_.find({member.group, member.param.scalar_type()});
  if (known != per_element_.end()) {
    // With room for the alignment of each tensor.
    return align_up(static_cast<size_t>(known->second * numel)) + kGuessedTensors * kAlignment;
  }
  const size_t item = std::max(kGuessedItem, member.param.itemsize());
  return align_up(static_cast<size_t>(numel) * kGuessedTensors * item);
}

}  // namespace optim_offload::state
