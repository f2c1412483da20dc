#pragma once

#include <cstdint>

namespace optim_offload {

/// Calls that can fail although the program is right.
enum class FaultSite {
  HostMemory,   ///< mapping host memory
  PageLock,     ///< locking it
  Thread,       ///< a thread that makes host memory in advance
  SlotMemory,   ///< device memory of a slot
  MakeEvent,    ///< a link's calls, as below
  CopyUp,       ///< one copy to the device
  CopyDown,     ///< one copy to the host
  RecordEvent,  ///< marking a point of a lane
  LaneWait,     ///< one lane's wait for another
  HostWait,     ///< the host's wait for a lane
};
inline constexpr int kFaultSites = 10;

const char* to_string(FaultSite site);

/// While one lives, the `nth` call (from 1) of `site` in the process fails as it would on a real
/// machine; with `lasting` all later ones of that site, and of every link, fail too, as on a device
/// that is lost. One at a time. For tests. Links must have been made under a FaultyLinks.
class ScopedFault {
 public:
  ScopedFault(FaultSite site, int64_t nth, bool lasting = false);
  ~ScopedFault();
  ScopedFault(const ScopedFault&) = delete;
  ScopedFault& operator=(const ScopedFault&) = delete;

  /// Calls of the site so far.
  int64_t calls() const;
  /// Whether the call came.
  bool hit() const;
};

/// Counts a call; true where it is to fail.
bool fault_due(FaultSite site);

/// Whether the planned fault is a lasting one.
bool fault_lasts();

[[noreturn]] void throw_fault(FaultSite site);
inline void throw_if_fault_due(FaultSite site) {
  if (fault_due(site)) throw_fault(site);
}

/// While one lives, new links let their calls fail. One at a time. For tests.
class FaultyLinks {
 public:
  FaultyLinks();
  ~FaultyLinks();
  FaultyLinks(const FaultyLinks&) = delete;
  FaultyLinks& operator=(const FaultyLinks&) = delete;
};

/// Whether a FaultyLinks lives.
bool links_are_faulty();

}  // namespace optim_offload
