#pragma once

#include <csignal>

namespace optim_offload::train {

/// While one lives, the first SIGINT or SIGTERM only sets a mark, so that a run can finish its step
/// and save; the second one has the effect it had before. One at a time in a process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that came, or 0.
  int received() const;

  /// "SIGINT" or "SIGTERM".
  const char* name() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace optim_offload::train
