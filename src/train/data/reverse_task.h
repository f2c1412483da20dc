#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace optim_offload::train {

/// Bytes are tokens 0 .. 255; these follow.
inline constexpr int64_t kBegin = 256;      ///< First token of every sequence; RoPE's anchor.
inline constexpr int64_t kSeparator = 257;  ///< Between the text and its reverse.
inline constexpr int64_t kEnd = 258;        ///< After the reverse; also fills the rest of a batch.
inline constexpr int64_t kVocabSize = 259;

/// Target of positions that carry no loss.
inline constexpr int64_t kNoTarget = -100;

/// Sequences for teacher forcing, on the CPU.
struct Batch {
  torch::Tensor tokens;      // (B, T) int64: begin, text, separator, reversed text, end, fill
  torch::Tensor targets;     // (B, T) int64: the next token within the answer, else kNoTarget
  int64_t target_count = 0;  ///< Targets that carry loss.
  int64_t token_count = 0;   ///< Tokens, fill not counted.
};

/// T of a piece of `bytes` bytes: with it fit begin, text, separator, answer. The end token is
/// only ever a target.
constexpr int64_t sequence_length(int64_t bytes) { return 2 * bytes + 2; }

/// The task *reverse text* on `pieces`, bytewise. Shorter sequences are filled at their end, which
/// a causal model's loss positions cannot see.
Batch make_reverse_batch(const std::vector<std::string>& pieces);

/// What the model is given to decode from: begin, text, separator. All of one length. (B, L + 2)
torch::Tensor make_prompts(const std::vector<std::string>& pieces);

}  // namespace optim_offload::train
