#pragma once

#include <cstddef>
#include <vector>

#include "state/registry.h"

namespace optim_offload::step {

/// Throws where two parameters overlap in memory, as those tied by set_data() do, and `order`, the
/// members in the order in which they are stepped, has the later one of the groups first: the plain
/// optimizer's results would depend on that.
void check_shared_params(const std::vector<state::Member>& members,
                         const std::vector<size_t>& order);

}  // namespace optim_offload::step
