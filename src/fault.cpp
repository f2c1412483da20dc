#include "fault.h"

#include <atomic>

#include "error.h"

namespace optim_offload {
namespace {

// -1 while no fault is planned, which is all that calls outside of tests look at.
std::atomic<int> planned_site{-1};
std::atomic<int64_t> planned_call{0};
std::atomic<bool> planned_lasting{false};
std::atomic<int64_t> seen{0};
std::atomic<bool> faulty_links{false};

bool is_of_link(int site) { return site >= static_cast<int>(FaultSite::MakeEvent); }

}  // namespace

const char* to_string(FaultSite site) {
  switch (site) {
    case FaultSite::HostMemory:
      return "host memory";
    case FaultSite::PageLock:
      return "page lock";
    case FaultSite::Thread:
      return "thread";
    case FaultSite::SlotMemory:
      return "slot memory";
    case FaultSite::MakeEvent:
      return "new event";
    case FaultSite::CopyUp:
      return "copy up";
    case FaultSite::CopyDown:
      return "copy down";
    case FaultSite::RecordEvent:
      return "record";
    case FaultSite::LaneWait:
      return "wait";
    case FaultSite::HostWait:
      return "host wait";
  }
  return "?";
}

ScopedFault::ScopedFault(FaultSite site, int64_t nth, bool lasting) {
  seen = 0;
  planned_call = nth;
  planned_lasting = lasting;
  planned_site = static_cast<int>(site);
}

ScopedFault::~ScopedFault() { planned_site = -1; }

int64_t ScopedFault::calls() const { return seen; }
bool ScopedFault::hit() const { return seen >= planned_call; }

bool fault_due(FaultSite site) {
  const int planned = planned_site;
  if (planned < 0) return false;
  if (planned == static_cast<int>(site)) {
    const int64_t call = ++seen;
    return planned_lasting ? call >= planned_call : call == planned_call;
  }
  return planned_lasting && seen >= planned_call && is_of_link(static_cast<int>(site));
}

bool fault_lasts() { return planned_lasting; }

void throw_fault(FaultSite site) {
  OFFLOAD_CHECK(false, "planned fault (", to_string(site),
                "); only tests plan them: end the ScopedFault");
}

FaultyLinks::FaultyLinks() { faulty_links = true; }
FaultyLinks::~FaultyLinks() { faulty_links = false; }

bool links_are_faulty() { return faulty_links; }

}  // namespace optim_offload
