#pragma once

#include <cstdint>

namespace optim_offload::train {

/// Shape of the decoder-only transformer. Defaults are a small model for tests.
struct ModelConfig {
  int64_t vocab_size = 259;
  int64_t dim = 64;  ///< Width of the residual stream.
  int64_t layers = 2;
  int64_t heads = 4;            ///< Query heads.
  int64_t kv_heads = 2;         ///< Key and value heads; divides `heads`.
  int64_t head_dim = 16;        ///< Even, for RoPE; need not be dim / heads.
  int64_t ffn_dim = 192;        ///< Inner width of the SwiGLU MLP.
  int64_t max_positions = 256;  ///< Longest sequence, in tokens.
  double rope_theta = 10000.0;  ///< Base of RoPE's wavelengths.
  double norm_eps = 1e-6;
  double init_std = 0.02;  ///< Of all matrices; those that write to the residual stream get
                           ///< init_std / sqrt(2 * layers).
  bool tied = false;       ///< The head is the embedding's own tensor.

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace optim_offload::train
