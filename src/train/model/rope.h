#pragma once

#include <cstdint>

#include <torch/types.h>

namespace optim_offload::train {

/// Rotary position embedding (Su et al., 2021, arXiv:2104.09864): dimensions d and d + head_dim/2
/// of a head form a pair, which is turned by position * theta^(-2d / head_dim). The product of
/// a query and a key then depends on their distance only.
///
/// The tables are fp32 whatever the model's dtype: bf16 cannot tell position 256 from 257. They are
/// computed, not learnt, and stay out of checkpoints.
class Rope {
 public:
  /// `head_dim` even; positions 0 .. max_positions - 1.
  Rope(int64_t head_dim, int64_t max_positions, double theta, torch::Device device);

  /// Turns `x` (B, H, T, head_dim), whose T positions begin with `first_position`. Keeps the dtype.
  /// Throws where a position is outside of the tables.
  torch::Tensor apply(const torch::Tensor& x, int64_t first_position = 0) const;

 private:
  torch::Tensor cos_;  // (max_positions, head_dim)
  torch::Tensor sin_;  // (max_positions, head_dim)
};

}  // namespace optim_offload::train
