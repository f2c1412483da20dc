#pragma once

#include <cstdint>

namespace optim_offload::train {

/// Numeric settings of the process, for as long as one lives; then what they were.
class NumericsGuard {
 public:
  /// `deterministic`: operators that add in an order of their own throw or are replaced, and cuBLAS
  /// works in a fixed workspace; make it before anything runs on CUDA. `tf32`: fp32 products on
  /// CUDA may use TF32. `threads`: of CPU operators, whose number decides how sums are split; 0
  /// leaves it.
  NumericsGuard(bool deterministic, bool tf32, int64_t threads);
  ~NumericsGuard();
  NumericsGuard(const NumericsGuard&) = delete;
  NumericsGuard& operator=(const NumericsGuard&) = delete;

 private:
  bool old_deterministic_;
  bool old_warn_only_;
  bool old_fill_;
  bool old_cudnn_sdp_;
  bool old_tf32_;
  int old_threads_;
};

}  // namespace optim_offload::train
