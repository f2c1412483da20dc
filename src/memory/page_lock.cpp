#include "memory/page_lock.h"

#include "fault.h"

namespace optim_offload::memory {

bool lock_pages(LockFor lock_for, [[maybe_unused]] void* data, [[maybe_unused]] size_t bytes,
                std::string& why) {
  if (fault_due(FaultSite::PageLock)) {
    why = "refused on purpose, in a test";
    return false;
  }
  switch (lock_for) {
    case LockFor::Nobody:
      break;
    case LockFor::Simulated:
      return true;
    case LockFor::Cuda:
#ifdef OPTIM_OFFLOAD_CUDA
      return lock_pages_cuda(data, bytes, why);
#endif
      break;
  }
  why = "nobody to lock for";
  return false;
}

void unlock_pages([[maybe_unused]] LockFor lock_for, [[maybe_unused]] void* data) noexcept {
#ifdef OPTIM_OFFLOAD_CUDA
  if (lock_for == LockFor::Cuda) unlock_pages_cuda(data);
#endif
}

}  // namespace optim_offload::memory
