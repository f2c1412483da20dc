#include "state/group_options.h"

#include <utility>

#include "error.h"
#include "state/group_access.h"
#include "state/state_tensors.h"

namespace optim_offload::state {

GroupOptions::GroupOptions(Groups& groups, const std::vector<size_t>& last_piece)
    : groups_(groups), kept_(groups.size()) {
  for (size_t g = 0; g < groups.size(); ++g) {
    auto& options = GroupAccess::options(groups[g]);
    if (options == nullptr) continue;
    kept_[g].before = options->clone();
    kept_[g].last_piece = last_piece[g];
  }
  // Only now, as clone() may throw.
  for (size_t g = 0; g < groups.size(); ++g) {
    if (kept_[g].before != nullptr) kept_[g].own = std::move(GroupAccess::options(groups[g]));
  }
}

GroupOptions::~GroupOptions() {
  for (size_t g = 0; g < kept_.size(); ++g) {
    if (kept_[g].own != nullptr) GroupAccess::options(groups_[g]) = std::move(kept_[g].own);
  }
}

void GroupOptions::before_piece(size_t piece) {
  for (size_t g = 0; g < kept_.size(); ++g) {
    Kept& kept = kept_[g];
    if (kept.before == nullptr) continue;
    auto& options = GroupAccess::options(groups_[g]);
    if (piece == kept.last_piece) {
      options = std::move(kept.own);
    } else {
      if (kept.own == nullptr) kept.own = std::move(options);
      options = kept.before->clone();
    }
  }
}

void GroupOptions::after_piece(const std::vector<size_t>& stepped) {
  for (const size_t g : stepped) {
    Kept& kept = kept_[g];
    if (kept.before == nullptr) continue;
    std::string after = describe_options(*GroupAccess::options(groups_[g]));
    if (kept.after.empty()) {
      kept.after = std::move(after);
      continue;
    }
    OFFLOAD_CHECK(kept.after == after, "two pieces of one step leave parameter group ", g,
                  " with different options (", kept.after, " and ", after,
                  "); the optimizer's options depend on the parameters it is given: step it with "
                  "chunked(false)");
  }
}

}  // namespace optim_offload::state
