#pragma once

#include <string>

#include "bench/device.h"
#include "bench/options.h"
#include "bench/saved_state.h"

namespace optim_offload::bench {

/// Steps a small model with the plain optimizer and with the wrapped one, in `mode` and with pieces
/// so small that there are many and that parameters are cut, and compares all bits of parameters
/// after each step and of the saved state after the last. Throws `c10::Error` that names the first
/// difference: then no figure of that mode is worth printing.
void check_against_plain(Mode mode, OptimizerKind kind, const BenchOptions& options,
                         Device& device);

/// Throws `c10::Error` that names `what` and the element where `a` and `b` differ in type, shape or
/// in a bit.
void require_same_bits(const torch::Tensor& a, const torch::Tensor& b, const std::string& what);

/// The same for the states of all parameters.
void require_same_state(const std::vector<SavedState>& a, const std::vector<SavedState>& b,
                        const NamedParameters& names);

}  // namespace optim_offload::bench
