#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

#include "memory/page_lock.h"
#include "optim_offload/options.h"

namespace optim_offload::memory {

/// Zeroed host memory straight from the system, in huge pages where it has them, touched by many
/// threads and then locked in one go: 20 times faster than locking while allocating. Not inherited
/// by forked children, so that copy-on-write cannot move pages under the device. Owns its memory.
class HostRegion {
 public:
  /// Maps `bytes` (rounded up to pages) and locks them as `pin` says.
  ///
  /// Throws where memory is short (bytes asked for), or where locking is refused and `pin` is
  /// Required. With Preferred a refusal is warned of once per process.
  HostRegion(size_t bytes, LockFor lock_for, PinMemory pin);
  ~HostRegion();
  HostRegion(const HostRegion&) = delete;
  HostRegion& operator=(const HostRegion&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool locked() const { return locked_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  LockFor lock_for_;
  bool locked_ = false;
  pid_t owner_ = getpid();
};

}  // namespace optim_offload::memory
