#pragma once

#include <cstdint>
#include <string>

#include <torch/arg.h>

#include "optim_offload/export.h"

namespace optim_offload {

/// How the host memory that holds the optimizer's state is locked.
enum class OPTIM_OFFLOAD_EXPORT PinMemory {
  Off,        ///< Pageable memory. Copies are slow and do not overlap with compute.
  Preferred,  ///< Page-locked; where the system refuses, pageable memory after one warning.
  Required,   ///< Page-locked; where the system refuses, an error that says what to raise.
};

/// Options of CPUOffloadOptimizer, in LibTorch's `TORCH_ARG` form:
/// `OffloadOptions().chunked(true).stream(true)`.
struct OPTIM_OFFLOAD_EXPORT OffloadOptions {
  /// Step chunk by chunk in a small, constant amount of GPU memory instead of all at once.
  TORCH_ARG(bool, chunked) = false;

  /// Overlap the copies of one piece with the compute of another, on two dedicated CUDA streams
  /// per device. Needs `chunked`.
  TORCH_ARG(bool, stream) = false;

  /// Page-locking of the host memory. Only page-locked memory reaches the link's speed.
  TORCH_ARG(PinMemory, pin_memory) = PinMemory::Preferred;

  /// ECMAScript regular expression, with one group that captures the layer's number, searched in
  /// each parameter's name. Names it does not match go to the trailing misc chunk.
  TORCH_ARG(std::string, layer_pattern) = R"(layers\.(\d+)\.)";

  /// Bytes of optimizer state per piece, the unit that is copied and stepped. Too small: the cost
  /// of launching copies and kernels shows. Too large: more GPU memory, and a longer fill and
  /// drain of the pipeline. At least 1 KiB; multiples of 256 bytes are used.
  /// docs/performance.md has what was measured.
  TORCH_ARG(int64_t, piece_bytes) = int64_t{40} << 20;

  /// Device buffers of piece size that the streamed step uses in turn. Two leave the link idle at
  /// times; more than four only cost memory. From 2 to 64.
  TORCH_ARG(int64_t, slots) = 3;

  /// Compare the first so many steps with the plain optimizer's: each is first done by the base as
  /// it would be without offloading, on copies of weights, gradients, options and state, then by
  /// the wrapper, and the results are compared bit by bit. A difference is a `c10::Error` that
  /// names the parameter, the tensor, the element and both values. 0 compares none.
  ///
  /// Such a step takes at least twice as long, needs room on the device for all state and a second
  /// copy of weights and gradients while the base steps, and host memory (pageable) for a second
  /// copy of weights, gradients and state. The base may evaluate a closure only once.
  TORCH_ARG(int64_t, verify) = 0;
};

}  // namespace optim_offload
