#pragma once

#include <cstddef>
#include <unordered_map>

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

namespace optim_offload::state {

struct Member;

/// From the first element of a tensor to the end of its last.
struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};
MemoryRange range_of(const at::Tensor& tensor);
inline bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

/// Where new state tensors lay whose storage others hold too, and whose they were: of two states
/// that share memory the first has gone home when the second is met. Does not keep the memory.
class MemoryClaims {
 public:
  /// The member that has claimed memory which overlaps the tensor's, or null. Not `member` itself,
  /// and not where neither moves.
  const Member* other_owner(const Member& member, const at::Tensor& tensor, bool moves) const;

  void add(const Member& member, const at::Tensor& tensor, bool moves);
  void clear() { claims_.clear(); }

 private:
  struct Claim {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps its address from being used again
    const Member* member;
    MemoryRange range;
    bool moves;
  };
  std::unordered_multimap<const c10::StorageImpl*, Claim> claims_;
};

}  // namespace optim_offload::state
