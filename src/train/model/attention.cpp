#include "train/model/attention.h"

#include <cmath>

#include <c10/util/Exception.h>

namespace optim_offload::train {

Attention::Attention(const ModelConfig& c, const torch::TensorOptions& options)
    : heads_(c.heads), kv_heads_(c.kv_heads), head_dim_(c.head_dim) {
  const double residual_std = c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers));
  const int64_t q_dim = heads_ * head_dim_;
  const int64_t kv_dim = kv_heads_ * head_dim_;
  const auto linear = [&](const char* name, int64_t in, int64_t out, double std) {
    return register_module(name, std::make_shared<Linear>(in, out, std, options));
  };
  q_proj_ = linear("q_proj", c.dim, q_dim, c.init_std);
  k_proj_ = linear("k_proj", c.dim, kv_dim, c.init_std);
  v_proj_ = linear("v_proj", c.dim, kv_dim, c.init_std);
  o_proj_ = linear("o_proj", q_dim, c.dim, residual_std);
  q_norm_ = register_module("q_norm", std::make_shared<RMSNorm>(head_dim_, c.norm_eps, options));
  k_norm_ = register_module("k_norm", std::make_shared<RMSNorm>(head_dim_, c.norm_eps, options));
}

torch::Tensor Attention::forward(const torch::Tensor& x, const Rope& rope, KVCache* cache) const {
  const int64_t batch = x.size(0);
  const int64_t length = x.size(1);
  const int64_t past = cache != nullptr ? cache->length() : 0;
  TORCH_CHECK(past == 0 || length == 1, "[optim_offload] ", length, " positions after ", past,
              " cached ones would need a mask of their own; give one token at a time");

  const auto split = [&](const torch::Tensor& y, int64_t heads) {
    return y.view({batch, length, heads, head_dim_});
  };
  const auto q =
      rope.apply(q_norm_->forward(split(q_proj_->forward(x), heads_)).transpose(1, 2), past);
  auto k = rope.apply(k_norm_->forward(split(k_proj_->forward(x), kv_heads_)).transpose(1, 2),
                      past);                                       // (B, kv_heads, T, head_dim)
  auto v = split(v_proj_->forward(x), kv_heads_).transpose(1, 2);  // (B, kv_heads, T, head_dim)

  if (cache != nullptr) {
    cache->keys = past > 0 ? torch::cat({cache->keys, k}, 2) : k;
    cache->values = past > 0 ? torch::cat({cache->values, v}, 2) : v;
    k = cache->keys;
    v = cache->values;
  }
  // A lone query after cached keys may see all of them.
  const auto y = at::scaled_dot_product_attention(
      q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/past == 0,
      /*scale=*/std::nullopt, /*enable_gqa=*/heads_ != kv_heads_);
  return o_proj_->forward(y.transpose(1, 2).reshape({batch, length, heads_ * head_dim_}));
}

}  // namespace optim_offload::train
