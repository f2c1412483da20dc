#include "step/shared_params.h"

#include <algorithm>
#include <functional>

#include "error.h"
#include "state/memory_claims.h"

namespace optim_offload::step {
namespace {

struct Place {
  state::MemoryRange range;
  size_t member;
  size_t rank;  ///< In the step's order.
};

}  // namespace

void check_shared_params(const std::vector<state::Member>& members,
                         const std::vector<size_t>& order) {
  std::vector<Place> places;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const at::Tensor& param = members[order[rank]].param;
    if (param.layout() != at::kStrided || !param.has_storage() || param.numel() == 0) continue;
    places.push_back({state::range_of(param), order[rank], rank});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::less<>{}(a.range.begin, b.range.begin);
  });
  for (size_t i = 0; i < places.size(); ++i) {
    for (size_t j = i + 1; j < places.size() && overlap(places[i].range, places[j].range); ++j) {
      const bool in_order =
          (places[i].member < places[j].member) == (places[i].rank < places[j].rank);
      const auto [first, second] = std::minmax(places[i].member, places[j].member);
      OFFLOAD_CHECK(in_order,
                    "two parameters share memory, and the second would be stepped before the first "
                    "(",
                    members[first].label(), " and ", members[second].label(),
                    "); register one tensor for both, or set chunked(false)");
    }
  }
}

}  // namespace optim_offload::step
