#include "train/evaluate.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <torch/utils.h>

#include "train/data/reverse_task.h"

namespace optim_offload::train {

torch::Tensor decode_reverse(const CausalLM& model, const std::vector<std::string>& pieces) {
  const torch::NoGradGuard no_grad;
  auto tokens = make_prompts(pieces).to(model.device());
  const auto answer_length = static_cast<int64_t>(pieces.front().size()) + 1;
  auto caches = model.make_caches();
  std::vector<torch::Tensor> written;
  for (int64_t i = 0; i < answer_length; ++i) {
    const auto logits = model.forward(tokens, &caches);              // (B, T, V)
    tokens = logits.select(1, logits.size(1) - 1).argmax(-1, true);  // (B, 1)
    written.push_back(tokens);
  }
  return torch::cat(written, 1).cpu();
}

Accuracy compare_reverse(const torch::Tensor& written, const std::vector<std::string>& pieces) {
  const auto answers = written.contiguous();
  const auto* token = answers.data_ptr<int64_t>();
  Accuracy result;
  for (const auto& piece : pieces) {
    const auto length = static_cast<int64_t>(piece.size());
    int64_t right = 0;
    for (auto c = piece.rbegin(); c != piece.rend(); ++c) {
      right += *token++ == static_cast<unsigned char>(*c) ? 1 : 0;
    }
    const bool ended = *token++ == kEnd;
    result.pieces += 1;
    result.bytes += length;
    result.right_bytes += right;
    result.exact_pieces += ended && right == length ? 1 : 0;
  }
  return result;
}

Accuracy evaluate_reverse(const CausalLM& model, const std::vector<std::string>& pieces,
                          int64_t batch_size) {
  std::map<size_t, std::vector<std::string>> by_length;
  for (const auto& piece : pieces) by_length[piece.size()].push_back(piece);

  Accuracy total;
  for (const auto& [length, group] : by_length) {
    for (size_t first = 0; first < group.size(); first += batch_size) {
      const auto last = std::min(group.size(), first + static_cast<size_t>(batch_size));
      const std::vector<std::string> batch(group.begin() + first, group.begin() + last);
      const auto part = compare_reverse(decode_reverse(model, batch), batch);
      total.pieces += part.pieces;
      total.exact_pieces += part.exact_pieces;
      total.bytes += part.bytes;
      total.right_bytes += part.right_bytes;
    }
  }
  return total;
}

std::string tokens_to_text(const torch::Tensor& tokens) {
  const auto flat = tokens.to(torch::kCPU).contiguous();
  std::string text;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const int64_t token = flat.data_ptr<int64_t>()[i];
    if (token == kEnd) break;
    if (token >= 0x20 && token < 0x7F) {
      text += static_cast<char>(token);
    } else {
      char code[8];
      std::snprintf(code, sizeof(code), token < 256 ? "\\x%02x" : "<%d>", static_cast<int>(token));
      text += code;
    }
  }
  return text;
}

}  // namespace optim_offload::train
