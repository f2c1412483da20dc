#pragma once

namespace optim_offload::train {

/// The program offload-train as a function: `offload-train CONFIG [--set key=value ...]
/// [--resume PATH]`. Never throws; errors go to stderr, without a stack trace.
///
/// Returns 0 when the run is complete, or was stopped by SIGINT or SIGTERM after a whole step and a
/// checkpoint; 2 for a wrong command line or config; 1 for any other error.
int run_trainer(int argc, const char* const* argv);

}  // namespace optim_offload::train
