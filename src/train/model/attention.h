#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "train/model/linear.h"
#include "train/model/model_config.h"
#include "train/model/rms_norm.h"
#include "train/model/rope.h"

namespace optim_offload::train {

/// Keys and values of the positions seen so far by one layer, for decoding token by token.
struct KVCache {
  torch::Tensor keys;    // (B, kv_heads, T so far, head_dim), after norm and RoPE
  torch::Tensor values;  // (B, kv_heads, T so far, head_dim)

  int64_t length() const { return keys.defined() ? keys.size(2) : 0; }
};

/// Causal self-attention of the Qwen3 kind: grouped queries (Ainslie et al., 2023,
/// arXiv:2305.13245), RMSNorm on each head's queries and keys, then RoPE. Query heads
/// g * (heads / kv_heads) and following share key head g.
class Attention : public torch::nn::Module {
 public:
  Attention(const ModelConfig& config, const torch::TensorOptions& options);

  /// (B, T, dim) -> (B, T, dim). With a cache, the T positions follow those in it and are added to
  /// it; T > 1 is then possible on an empty cache only.
  torch::Tensor forward(const torch::Tensor& x, const Rope& rope, KVCache* cache = nullptr) const;

 private:
  int64_t heads_;
  int64_t kv_heads_;
  int64_t head_dim_;
  std::shared_ptr<Linear> q_proj_;
  std::shared_ptr<Linear> k_proj_;
  std::shared_ptr<Linear> v_proj_;
  std::shared_ptr<Linear> o_proj_;
  std::shared_ptr<RMSNorm> q_norm_;
  std::shared_ptr<RMSNorm> k_norm_;
};

}  // namespace optim_offload::train
