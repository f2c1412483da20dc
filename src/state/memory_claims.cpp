#include "state/memory_claims.h"

#include "memory/arena.h"

namespace optim_offload::state {

MemoryRange range_of(const at::Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  return {data, data + memory::extent_bytes(tensor)};
}

const Member* MemoryClaims::other_owner(const Member& member, const at::Tensor& tensor,
                                        bool moves) const {
  const auto [first, last] = claims_.equal_range(tensor.storage().unsafeGetStorageImpl());
  for (auto entry = first; entry != last; ++entry) {
    const Claim& claim = entry->second;
    if (claim.member == &member || (!claim.moves && !moves)) continue;
    if (overlap(claim.range, range_of(tensor))) return claim.member;
  }
  return nullptr;
}

void MemoryClaims::add(const Member& member, const at::Tensor& tensor, bool moves) {
  const c10::Storage& storage = tensor.storage();
  claims_.emplace(storage.unsafeGetStorageImpl(),
                  Claim{storage.getWeakStorageImpl(), &member, range_of(tensor), moves});
}

}  // namespace optim_offload::state
