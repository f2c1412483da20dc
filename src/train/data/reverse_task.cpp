#include "train/data/reverse_task.h"

#include <algorithm>

#include <c10/util/Exception.h>

namespace optim_offload::train {
namespace {

int64_t byte(char c) { return static_cast<unsigned char>(c); }

}  // namespace

Batch make_reverse_batch(const std::vector<std::string>& pieces) {
  TORCH_CHECK(!pieces.empty(), "[optim_offload] a batch of no pieces; give at least one");
  size_t longest = 0;
  for (const auto& piece : pieces) longest = std::max(longest, piece.size());
  const auto batch = static_cast<int64_t>(pieces.size());
  const int64_t length = sequence_length(static_cast<int64_t>(longest));

  Batch result;
  result.tokens = torch::full({batch, length}, kEnd, torch::kInt64);
  result.targets = torch::full({batch, length}, kNoTarget, torch::kInt64);
  for (int64_t b = 0; b < batch; ++b) {
    const auto& piece = pieces[b];
    auto* token = result.tokens.data_ptr<int64_t>() + b * length;
    auto* target = result.targets.data_ptr<int64_t>() + b * length + piece.size() + 1;
    *token++ = kBegin;
    for (const char c : piece) *token++ = byte(c);
    *token++ = kSeparator;
    for (auto c = piece.rbegin(); c != piece.rend(); ++c) *token++ = *target++ = byte(*c);
    *target = kEnd;
    result.target_count += static_cast<int64_t>(piece.size()) + 1;
    result.token_count += sequence_length(static_cast<int64_t>(piece.size()));
  }
  return result;
}

torch::Tensor make_prompts(const std::vector<std::string>& pieces) {
  TORCH_CHECK(!pieces.empty(), "[optim_offload] prompts of no pieces; give at least one");
  const auto batch = static_cast<int64_t>(pieces.size());
  const auto length = static_cast<int64_t>(pieces.front().size()) + 2;
  auto prompts = torch::full({batch, length}, kSeparator, torch::kInt64);
  for (int64_t b = 0; b < batch; ++b) {
    TORCH_CHECK(pieces[b].size() == pieces.front().size(), "[optim_offload] prompts of ",
                pieces[b].size(), " and ", pieces.front().size(),
                " bytes in one batch; group pieces by length");
    auto* token = prompts.data_ptr<int64_t>() + b * length;
    *token++ = kBegin;
    for (const char c : pieces[b]) *token++ = byte(c);
  }
  return prompts;
}

}  // namespace optim_offload::train
