#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "bench/model_spec.h"
#include "optim_offload/options.h"

namespace optim_offload::bench {

enum class Mode { Resident, AllAtOnce, Sequential, Streamed };
enum class OptimizerKind { AdamW, FusedAdamW, SGD, Muon };

const char* to_string(Mode mode);
const char* to_string(OptimizerKind kind);

/// Throw `c10::Error` with the valid names for a name that is none of them.
Mode parse_mode(const std::string& name);
OptimizerKind parse_optimizer(const std::string& name);
c10::ScalarType parse_dtype(const std::string& name);
PinMemory parse_pin(const std::string& name);

/// What one run of offload-bench does.
struct BenchOptions {
  std::vector<ModelSpec> models;
  std::vector<Mode> modes;
  std::vector<OptimizerKind> optimizers;
  c10::ScalarType dtype = c10::ScalarType::Float;

  int64_t steps = 10;       ///< Timed steps, after the first step and the warm-up.
  int64_t warmup = 1;       ///< Steps after the first that are not timed.
  int64_t soak = 0;         ///< Further steps over which memory must not grow.
  bool save_check = false;  ///< In the streamed mode.
  bool simulate = false;
  int64_t link_repeats = 3;

  int64_t piece_mib = OffloadOptions().piece_bytes() >> 20;
  int64_t slots = 3;
  PinMemory pin = PinMemory::Preferred;

  std::string json;            ///< File for the results; empty for none.
  std::string pictures;        ///< Folder for SVG files and the trace; empty for none.
  std::string timeline_model;  ///< Model whose streamed step is drawn; empty for the first.

  /// The wrapper's options for `mode`, with pieces of `piece_bytes`. Resident has none: an error.
  OffloadOptions offload(Mode mode, int64_t piece_bytes) const;
  OffloadOptions offload(Mode mode) const { return offload(mode, piece_mib << 20); }
};

/// Reads the command line. Prints help or what is wrong, and then gives the exit code in
/// `exit_code` and no options.
std::optional<BenchOptions> parse_command_line(int argc, char** argv, int& exit_code);

}  // namespace optim_offload::bench
