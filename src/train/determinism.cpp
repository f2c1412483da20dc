#include "train/determinism.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace optim_offload::train {

NumericsGuard::NumericsGuard(bool deterministic, bool tf32, int64_t threads)
    : old_deterministic_(at::globalContext().deterministicAlgorithms()),
      old_warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      old_fill_(at::globalContext().deterministicFillUninitializedMemory()),
      old_cudnn_sdp_(at::globalContext().userEnabledCuDNNSDP()),
      old_tf32_(at::globalContext().allowTF32CuBLAS()),
      old_threads_(at::get_num_threads()) {
  auto& context = at::globalContext();
  if (deterministic) {
    // Before the run starts threads of its own.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
    context.setDeterministicAlgorithms(true, /*warn_only=*/false);
    // Finds reads of memory that nobody wrote, at the price of filling every new tensor.
    context.setDeterministicFillUninitializedMemory(false);
    // Its backward pass has no deterministic form.
    context.setSDPUseCuDNN(false);
  }
  context.setAllowTF32CuBLAS(tf32);
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

NumericsGuard::~NumericsGuard() {
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(old_deterministic_, old_warn_only_);
  context.setDeterministicFillUninitializedMemory(old_fill_);
  context.setSDPUseCuDNN(old_cudnn_sdp_);
  context.setAllowTF32CuBLAS(old_tf32_);
  if (at::get_num_threads() != old_threads_) at::set_num_threads(old_threads_);
}

}  // namespace optim_offload::train
