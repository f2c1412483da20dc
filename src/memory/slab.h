#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "align.h"
#include "memory/host_region.h"

namespace optim_offload::memory {

/// A region cut into blocks, first fit. Thread-safe.
class Slab {
 public:
  Slab(size_t bytes, LockFor lock_for, PinMemory pin)
      : region_(bytes, lock_for, pin), lock_for_(lock_for) {
    free_[0] = region_.size();
  }

  /// Null where no hole is large enough.
  std::byte* allocate(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
      if (hole->second < bytes) continue;
      const size_t offset = hole->first;
      const size_t rest = hole->second - bytes;
      free_.erase(hole);
      if (rest > 0) free_[offset + bytes] = rest;
      used_ += bytes;
      return region_.data() + offset;
    }
    return nullptr;
  }

  void free(std::byte* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto hole = free_.emplace(static_cast<size_t>(data - region_.data()), bytes).first;
    used_ -= bytes;
    const auto after = std::next(hole);
    if (after != free_.end() && hole->first + hole->second == after->first) {
      hole->second += after->second;
      free_.erase(after);
    }
    if (hole == free_.begin()) return;
    const auto before = std::prev(hole);
    if (before->first + before->second == hole->first) {
      before->second += hole->second;
      free_.erase(hole);
    }
  }

  bool empty() const {
    const std::lock_guard lock(mutex_);
    return used_ == 0;
  }
  bool contains(const void* data) const {
    const auto* byte = static_cast<const std::byte*>(data);
    return byte >= region_.data() && byte < region_.data() + region_.size();
  }
  size_t size() const { return region_.size(); }
  bool locked() const { return region_.locked(); }
  LockFor lock_for() const { return lock_for_; }

 private:
  HostRegion region_;
  LockFor lock_for_;
  mutable std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset to bytes, no two touching
  size_t used_ = 0;
};

}  // namespace optim_offload::memory
