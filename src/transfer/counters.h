#pragma once

#include <atomic>
#include <cstdint>

namespace optim_offload::transfer {

/// What the transfer layer has done in this process, for tests and benchmarks. All links add to it.
struct Counters {
  std::atomic<int64_t> streams{0};     ///< Stream objects (or worker threads) created.
  std::atomic<int64_t> events{0};      ///< Event objects created.
  std::atomic<int64_t> copies{0};      ///< Copies queued.
  std::atomic<int64_t> waits{0};       ///< Waits of one lane for another.
  std::atomic<int64_t> host_waits{0};  ///< Times the host waited for a lane.
};

Counters& counters();

}  // namespace optim_offload::transfer
