#include "train/model/transformer.h"

#include <string>
#include <unordered_set>

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/modulelist.h>

namespace optim_offload::train {
namespace {

const ModelConfig& checked(const ModelConfig& c) {
  TORCH_CHECK(c.vocab_size > 0 && c.dim > 0 && c.layers > 0 && c.ffn_dim > 0 && c.max_positions > 0,
              "[optim_offload] a model needs positive sizes (vocab_size = ", c.vocab_size,
              ", dim = ", c.dim, ", layers = ", c.layers, ", ffn_dim = ", c.ffn_dim,
              ", max_positions = ", c.max_positions, "); raise those below 1");
  TORCH_CHECK(c.kv_heads > 0 && c.heads > 0 && c.heads % c.kv_heads == 0,
              "[optim_offload] query heads cannot share key heads evenly (heads = ", c.heads,
              ", kv_heads = ", c.kv_heads, "); make heads a multiple of kv_heads");
  return c;
}

}  // namespace

DecoderLayer::DecoderLayer(const ModelConfig& c, const torch::TensorOptions& options)
    : input_layernorm_(register_module("input_layernorm",
                                       std::make_shared<RMSNorm>(c.dim, c.norm_eps, options))),
      self_attn_(register_module("self_attn", std::make_shared<Attention>(c, options))),
      post_attention_layernorm_(register_module(
          "post_attention_layernorm", std::make_shared<RMSNorm>(c.dim, c.norm_eps, options))),
      mlp_(register_module("mlp", std::make_shared<MLP>(c, options))) {}

torch::Tensor DecoderLayer::forward(const torch::Tensor& x, const Rope& rope,
                                    KVCache* cache) const {
  const auto h = x + self_attn_->forward(input_layernorm_->forward(x), rope, cache);
  return h + mlp_->forward(post_attention_layernorm_->forward(h));
}

Decoder::Decoder(const ModelConfig& c, const torch::TensorOptions& options)
    : rope_(c.head_dim, c.max_positions, c.rope_theta, options.device()),
      embed_tokens_(register_module(
          "embed_tokens", std::make_shared<Linear>(c.dim, c.vocab_size, c.init_std, options))) {
  auto list = register_module("layers", std::make_shared<torch::nn::ModuleListImpl>());
  for (int64_t i = 0; i < c.layers; ++i) {
    layers_.push_back(std::make_shared<DecoderLayer>(c, options));
    list->push_back(layers_.back());
  }
  norm_ = register_module("norm", std::make_shared<RMSNorm>(c.dim, c.norm_eps, options));
}

torch::Tensor Decoder::forward(const torch::Tensor& tokens, std::vector<KVCache>* caches) const {
  auto x = at::embedding(embed_tokens_->weight, tokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x, rope_, caches != nullptr ? &caches->at(i) : nullptr);
  }
  return norm_->forward(x);
}

CausalLM::CausalLM(const ModelConfig& config, const torch::TensorOptions& options)
    : config_(checked(config)),
      decoder_(register_module("model", std::make_shared<Decoder>(config, options))),
      lm_head_(register_module("lm_head",
                               config.tied ? std::make_shared<Linear>(decoder_->embedding())
                                           : std::make_shared<Linear>(config.dim, config.vocab_size,
                                                                      config.init_std, options))) {}

torch::Tensor CausalLM::forward(const torch::Tensor& tokens, std::vector<KVCache>* caches) const {
  return lm_head_->forward(decoder_->forward(tokens, caches));
}

std::vector<KVCache> CausalLM::make_caches() const {
  return std::vector<KVCache>(static_cast<size_t>(config_.layers));
}

int64_t CausalLM::parameter_count() const {
  std::unordered_set<const void*> seen;
  int64_t count = 0;
  for (const auto& p : parameters()) {
    if (seen.insert(p.unsafeGetTensorImpl()).second) count += p.numel();
  }
  return count;
}

}  // namespace optim_offload::train
