#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "train/model/attention.h"
#include "train/model/mlp.h"
#include "train/model/model_config.h"
#include "train/model/rms_norm.h"
#include "train/model/rope.h"

namespace optim_offload::train {

/// One pre-norm layer: x + attention(norm(x)), then x + mlp(norm(x)).
class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const ModelConfig& config, const torch::TensorOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const Rope& rope, KVCache* cache) const;

 private:
  std::shared_ptr<RMSNorm> input_layernorm_;
  std::shared_ptr<Attention> self_attn_;
  std::shared_ptr<RMSNorm> post_attention_layernorm_;
  std::shared_ptr<MLP> mlp_;
};

/// Embedding, layers and final norm; the part named `model.` in a CausalLM.
class Decoder : public torch::nn::Module {
 public:
  Decoder(const ModelConfig& config, const torch::TensorOptions& options);

  /// tokens (B, T) int64 -> (B, T, dim).
  torch::Tensor forward(const torch::Tensor& tokens, std::vector<KVCache>* caches) const;

  const torch::Tensor& embedding() const { return embed_tokens_->weight; }

 private:
  Rope rope_;
  std::shared_ptr<Linear> embed_tokens_;  // looked up by row, never multiplied
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<RMSNorm> norm_;
};

/// Decoder-only language model of the Qwen3 kind, with that family's parameter names:
/// `model.embed_tokens.weight`, `model.layers.N.self_attn.q_proj.weight`, ..., `lm_head.weight`.
class CausalLM : public torch::nn::Module {
 public:
  /// Makes all parameters on `options`' device and in its dtype, drawn from that device's default
  /// generator. Throws where the shape makes no sense.
  CausalLM(const ModelConfig& config, const torch::TensorOptions& options);

  /// tokens (B, T) int64 on the model's device -> logits (B, T, vocab_size) in the model's dtype;
  /// row t depends on tokens 0 .. t only. With `caches` (one per layer, see make_caches()) the
  /// tokens follow those seen before.
  torch::Tensor forward(const torch::Tensor& tokens, std::vector<KVCache>* caches = nullptr) const;

  std::vector<KVCache> make_caches() const;

  const ModelConfig& config() const { return config_; }
  torch::Device device() const { return decoder_->embedding().device(); }

  /// Elements of all parameters; a tied head counts once.
  int64_t parameter_count() const;

 private:
  ModelConfig config_;
  std::shared_ptr<Decoder> decoder_;
  std::shared_ptr<Linear> lm_head_;
};

}  // namespace optim_offload::train
