#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/model/transformer.h"

namespace optim_offload::train {

/// How well a model writes pieces backwards.
struct Accuracy {
  int64_t pieces = 0;
  int64_t exact_pieces = 0;  ///< Every byte right, and the end token right after the last.
  int64_t bytes = 0;
  int64_t right_bytes = 0;  ///< Bytes right at their own place.

  double exact_match() const { return pieces > 0 ? static_cast<double>(exact_pieces) / pieces : 0; }
  double character() const { return bytes > 0 ? static_cast<double>(right_bytes) / bytes : 0; }
};

/// What the model writes after each prompt: greedy, token by token, each fed back; the answer is
/// never shown. `pieces` all of one length L. (B, L + 1) int64 on the CPU, the last where the
/// end token should be.
torch::Tensor decode_reverse(const CausalLM& model, const std::vector<std::string>& pieces);

/// Compares what decode_reverse() gave with what it should be.
Accuracy compare_reverse(const torch::Tensor& written, const std::vector<std::string>& pieces);

/// Decodes `pieces` (any lengths) in batches of at most `batch_size` and compares. Draws no random
/// numbers and leaves no gradients.
Accuracy evaluate_reverse(const CausalLM& model, const std::vector<std::string>& pieces,
                          int64_t batch_size);

/// `tokens` (T) as text: printable ASCII as it is, other bytes as \xNN, up to the end token.
std::string tokens_to_text(const torch::Tensor& tokens);

}  // namespace optim_offload::train
