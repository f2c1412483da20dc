#pragma once

#include <array>
#include <cstddef>

namespace optim_offload::transfer {

/// Every place in the library in which a lane or the host waits for a lane: Link::wait() and
/// Link::synchronize() take one, each has one call. Named so that a test can take it away from a
/// simulated device (SimulatedDeviceOptions::without) and see that another test notices; the CUDA
/// side does not look at it. docs/internals.md says who waits for what, and why.
enum class WaitPoint {
  SlotsAllocated,
  SlotFree,
  StateArrived,
  PieceStepped,
  NewStateHome,
  MemoryFree,
  CopiesDone,
  UploadsEnded,
  DownloadsEnded,
  WholeStepDone,
  SequenceDone,
  RescueDone,
  StateSettled,
  Synchronized,
};

struct NamedWait {
  WaitPoint point;
  const char* name;
};

inline constexpr std::array kWaitPoints{
    NamedWait{WaitPoint::SlotsAllocated, "SlotsAllocated"},
    NamedWait{WaitPoint::SlotFree, "SlotFree"},
    NamedWait{WaitPoint::StateArrived, "StateArrived"},
    NamedWait{WaitPoint::PieceStepped, "PieceStepped"},
    NamedWait{WaitPoint::NewStateHome, "NewStateHome"},
    NamedWait{WaitPoint::MemoryFree, "MemoryFree"},
    NamedWait{WaitPoint::CopiesDone, "CopiesDone"},
    NamedWait{WaitPoint::UploadsEnded, "UploadsEnded"},
    NamedWait{WaitPoint::DownloadsEnded, "DownloadsEnded"},
    NamedWait{WaitPoint::WholeStepDone, "WholeStepDone"},
    NamedWait{WaitPoint::SequenceDone, "SequenceDone"},
    NamedWait{WaitPoint::RescueDone, "RescueDone"},
    NamedWait{WaitPoint::StateSettled, "StateSettled"},
    NamedWait{WaitPoint::Synchronized, "Synchronized"},
};
// The last of the enum is named, so all are: their numbers run on without a gap.
static_assert(kWaitPoints.size() == static_cast<size_t>(WaitPoint::Synchronized) + 1);

}  // namespace optim_offload::transfer
