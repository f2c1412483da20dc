#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/device.h"
#include "bench/statistics.h"

namespace optim_offload::bench {

/// Seconds that the same bytes as a step's take over the link. What was not measured is zero.
struct LinkTimes {
  int64_t bytes = 0;  ///< In each direction.
  double h2d_s = 0;   ///< Up, with nothing else on the link.
  double d2h_s = 0;   ///< Down, with nothing else on the link.
  double both_s = 0;  ///< Both at once, until the later is done: the link limit of a step.
};

/// Memory before and after many steps.
struct Soak {
  int64_t steps = 0;
  Memory device_before, device_after;
  int64_t host_before = 0;  ///< Pinned and pageable bytes that the wrapper holds.
  int64_t host_after = 0;

  bool grew() const {
    return device_after.allocated > device_before.allocated ||
           device_after.reserved > device_before.reserved || host_after > host_before;
  }
};

/// What was measured of one model, optimizer and mode. A figure that does not apply is absent.
struct Row {
  std::string model, mode, optimizer, dtype;
  int64_t state_bytes = 0;
  int64_t parameters = 0;

  double construct_s = 0;   ///< Making the optimizer, wrapper included.
  double first_step_s = 0;  ///< The step that makes the state, and the host memory for it.
  Summary step_s;           ///< Later steps, until all copies are done.

  LinkTimes link;                 ///< Medians; measured before each of the steps.
  std::optional<double> limit_s;  ///< The least that this mode can take; see `limit`.
  std::string limit;              ///< In words.

  std::optional<double> device_step_s;  ///< Resident: the step by events on the device.
  std::optional<double> h2d_gb_per_s, d2h_gb_per_s;  ///< Bytes over the step's whole time.
  std::optional<double> host_share;   ///< The host's own work in the loop over the step.
  std::optional<double> queue_share;  ///< The same with its waits for room in the driver's queues.

  /// Peaks over weights and gradients.
  std::optional<Memory> first_vram, later_vram;

  std::optional<double> pinned_over_state;
  int64_t pinned_bytes = 0;
  int64_t pageable_bytes = 0;
  int64_t chunks = 0, pieces = 0, tiles = 0;
  int64_t largest_piece_bytes = 0;
  std::string oversize_piece;

  std::optional<Soak> soak;
  std::optional<int64_t> save_vram_bytes;  ///< Peak that save() added.
  std::optional<double> save_s;

  std::optional<double> step_over_limit() const {
    return limit_s ? std::optional<double>(step_s.median / *limit_s) : std::nullopt;
  }
  /// The larger of first and later peaks.
  std::optional<Memory> vram() const;
};

/// The link with the bytes of one model and optimizer, before the modes were timed.
struct LinkRow {
  std::string model, optimizer;
  LinkTimes times;
};

/// One run.
struct Report {
  Environment environment;
  int64_t steps = 0, warmup = 0;
  int64_t piece_mib = 0, slots = 0;
  std::string pin;
  std::vector<LinkRow> links;
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< What could not be measured, and why.
};

constexpr double kMiB = 1024.0 * 1024.0;

/// The run as JSON text: "environment", "settings", "link", "rows", "notes". Figures that do not
/// apply are null. Holds no host names and no paths.
std::string to_json(const Report& report);

/// The run as a table of plain text.
std::string to_table(const Report& report);

/// Bars of the step's time by mode, a panel per model and optimizer, with the limit marked.
std::string step_time_svg(const Report& report);

/// Bars of the peak GPU memory over weights and gradients by mode, allocated and reserved.
std::string vram_svg(const Report& report);

}  // namespace optim_offload::bench
