#pragma once

#include <cstdint>
#include <string>

#include "optim_offload/export.h"

namespace optim_offload {

/// What one call of CPUOffloadOptimizer::step() moved and held. All bytes and times are of the
/// latest finished step unless said otherwise; all zero before the first.
struct OPTIM_OFFLOAD_EXPORT OffloadStats {
  int64_t steps = 0;         ///< Steps finished since construction.
  int64_t chunks = 0;        ///< Chunks in the plan.
  int64_t pieces = 0;        ///< Pieces stepped.
  int64_t tiles = 0;         ///< Pieces that are a tile of one larger parameter.
  int64_t h2d_bytes = 0;     ///< Bytes of state copied to devices.
  int64_t d2h_bytes = 0;     ///< Bytes of state copied to the host.
  double seconds = 0;        ///< Wall time of the step, without the closure.
  double queue_seconds = 0;  ///< Part of it until all work was queued, before the final wait.

  /// Host time that the queueing itself takes: that of the step's first 64 pieces, scaled to all.
  /// Later ones, once the driver's queues are full (about 1,000 entries each), spend most of
  /// `queue_seconds` waiting for room in them.
  double host_seconds = 0;

  int64_t peak_slot_bytes = 0;      ///< Largest total of state held on devices at one time.
  int64_t largest_piece_bytes = 0;  ///< Largest piece; above `piece_bytes` where it cannot be cut.
  std::string oversize_piece;  ///< Name of that piece's first parameter, empty where none is above.
  int64_t state_bytes = 0;     ///< State now at rest on the host.
  int64_t pinned_bytes = 0;    ///< Page-locked host memory now held.
  int64_t pageable_bytes =
      0;  ///< Host memory now held that could not be, or was not to be, locked.

  /// Bytes both ways over the step's wall time, in 1e9 bytes per second; 0 where no time was taken.
  double gigabytes_per_second() const {
    return seconds > 0 ? static_cast<double>(h2d_bytes + d2h_bytes) * 1e-9 / seconds : 0.0;
  }
};

}  // namespace optim_offload
