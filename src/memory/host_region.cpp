#include "memory/host_region.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <c10/util/error.h>

#include "align.h"
#include "error.h"
#include "fault.h"

namespace optim_offload::memory {
namespace {

// 4 threads reach most of the memory's bandwidth for page faults, 16 all of it.
constexpr size_t kMaxTouchThreads = 16;
constexpr size_t kTouchBlock = size_t{64} << 20;  // bytes per thread at least
constexpr size_t kHugePage = size_t{2} << 20;

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

/// Writes one byte per page, so that the system finds the pages now, in parallel.
void touch(std::byte* data, size_t size) {
  const size_t page = page_size();
  const size_t threads = std::clamp<size_t>(
      size / kTouchBlock, 1,
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxTouchThreads));
  const size_t share = align_up((size + threads - 1) / threads, kHugePage);
  std::vector<std::jthread> pool;
  for (size_t begin = 0; begin < size; begin += share) {
    auto work = [=, end = std::min(begin + share, size)] {
      for (size_t at = begin; at < end; at += page) data[at] = std::byte{0};
    };
    if (threads == 1) {
      work();
    } else {
      try {
        pool.emplace_back(work);
      } catch (const std::system_error&) {
        work();  // no more threads to be had
      }
    }
  }
}

void* map_pages(size_t bytes) {
  if (fault_due(FaultSite::HostMemory)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

std::string memlock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur) + " bytes";
}

}  // namespace

HostRegion::HostRegion(size_t bytes, LockFor lock_for, PinMemory pin)
    : size_(align_up(bytes, page_size())),
      lock_for_(pin == PinMemory::Off ? LockFor::Nobody : lock_for) {
  // One page more than is used or locked, so that two regions never touch and no copy spans both.
  void* mapped = map_pages(size_ + page_size());
  OFFLOAD_CHECK(mapped != MAP_FAILED, "no host memory for optimizer state (", size_,
                " bytes: ", c10::utils::str_error(errno),
                "); free memory or raise the limit (ulimit -v)");
  data_ = static_cast<std::byte*>(mapped);
  // Advice only: without huge pages locking takes longer.
  static_cast<void>(madvise(data_, size_, MADV_HUGEPAGE));
  if (lock_for_ == LockFor::Nobody) return;

  touch(data_, size_);
  std::string why;
  locked_ = lock_pages(lock_for_, data_, size_, why);
  if (locked_) {
    // A forked child's copy-on-write would move pages under the device.
    static_cast<void>(madvise(data_, size_, MADV_DONTFORK));
    return;
  }
  if (pin == PinMemory::Required) {
    munmap(data_, size_ + page_size());
    OFFLOAD_CHECK(false, "host memory could not be page-locked (", size_, " bytes: ", why,
                  "; RLIMIT_MEMLOCK ", memlock_limit(),
                  "); raise the limit (ulimit -l) or set pin_memory to Preferred");
  }
  TORCH_WARN_ONCE("[optim_offload] host memory could not be page-locked (", size_, " bytes: ", why,
                  "; RLIMIT_MEMLOCK ", memlock_limit(),
                  "); going on with pageable memory, which copies several times slower: raise the "
                  "limit (ulimit -l)");
}

HostRegion::~HostRegion() {
  // In a forked child a locked region is not mapped; its addresses may be someone else's.
  if (locked_ && getpid() != owner_) return;
  if (locked_) unlock_pages(lock_for_, data_);
  munmap(data_, size_ + page_size());
}

}  // namespace optim_offload::memory
