#include "train/fingerprint.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace optim_offload::train {
namespace {

/// FNV-1a, 64 bits: tells texts apart, guards against nothing.
std::string hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

}  // namespace

nlohmann::json shape_fingerprint(const TrainConfig& config) {
  const auto& m = config.model;
  const auto& type = config.optimizer.type;
  return {{"vocab_size", m.vocab_size},
          {"dim", m.dim},
          {"layers", m.layers},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"ffn_dim", m.ffn_dim},
          {"tied", m.tied},
          {"dtype", config.dtype},
          // Both read and write AdamW's state.
          {"optimizer", type == "fused_adamw" ? "adamw" : type}};
}

nlohmann::json course_fingerprint(const TrainConfig& config, std::string_view text) {
  const auto& d = config.data;
  const auto& s = config.schedule;
  return {{"text", hash_of(text)},
          {"min_bytes", d.lengths.min},
          {"max_bytes", d.lengths.max},
          {"block_bytes", d.block_bytes},
          {"held_out", d.held_out},
          {"seed", config.seed},
          {"batch_size", config.batch_size},
          {"grad_accum", config.grad_accum},
          {"grad_clip", config.grad_clip},
          {"lr", config.optimizer.lr()},
          {"schedule", s.kind},
          {"steps", s.steps},
          {"warmup_steps", s.warmup_steps},
          {"min_lr_ratio", s.min_lr_ratio},
          {"rope_theta", config.model.rope_theta},
          {"norm_eps", config.model.norm_eps},
          {"optimizer_type", config.optimizer.type}};
}

std::vector<std::string> differences(const nlohmann::json& checkpoint,
                                     const nlohmann::json& config) {
  std::vector<std::string> found;
  for (const auto& [key, value] : config.items()) {
    const auto saved =
        checkpoint.is_object() ? checkpoint.value(key, nlohmann::json()) : nlohmann::json();
    if (saved != value) {
      found.push_back(key + ": " + saved.dump() + " in the checkpoint, " + value.dump() +
                      " in the config");
    }
  }
  return found;
}

}  // namespace optim_offload::train
