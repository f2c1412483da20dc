#include "train/data/piece_sampler.h"

#include <algorithm>
#include <unordered_set>

#include <c10/util/Exception.h>

#include "train/data/random.h"

namespace optim_offload::train {

PieceSampler::PieceSampler(const TextCorpus& corpus, const std::vector<TextCorpus::Span>& spans,
                           PieceLengths lengths, uint64_t seed)
    : corpus_(&corpus), lengths_(lengths), seed_(seed) {
  TORCH_CHECK(lengths.min >= 1 && lengths.max >= lengths.min, "[optim_offload] no piece has from ",
              lengths.min, " to ", lengths.max, " bytes; set 1 <= min_bytes <= max_bytes");
  for (const auto& span : spans) {
    if (span.size() < lengths.max) continue;
    spans_.push_back(span);
    starts_before_.push_back(starts_);
    starts_ += span.size() - lengths.max + 1;
  }
  TORCH_CHECK(starts_ > 0, "[optim_offload] no range of the text has ", lengths.max,
              " bytes; give more text, larger blocks or shorter pieces");
}

std::string PieceSampler::piece(int64_t index) const {
  const auto draw = 2 * static_cast<uint64_t>(index);
  const int64_t length =
      lengths_.min + below(random_at(seed_, draw), lengths_.max - lengths_.min + 1);
  const int64_t place = below(random_at(seed_, draw + 1), starts_);
  const auto after = std::upper_bound(starts_before_.begin(), starts_before_.end(), place);
  const auto span = static_cast<size_t>(after - starts_before_.begin() - 1);
  const int64_t begin = spans_[span].begin + place - starts_before_[span];
  return std::string(corpus_->text({begin, begin + length}));
}

std::vector<std::string> held_out_pieces(const TextCorpus& corpus, PieceLengths lengths,
                                         int64_t count, uint64_t seed) {
  const PieceSampler sampler(corpus, corpus.held_out(), lengths, seed);
  std::vector<std::string> pieces;
  std::unordered_set<std::string> tried;
  const int64_t tries = 100 * count;
  for (int64_t i = 0; i < tries && static_cast<int64_t>(pieces.size()) < count; ++i) {
    auto piece = sampler.piece(i);
    if (!tried.insert(piece).second || corpus.occurs_in_training(piece)) continue;
    pieces.push_back(std::move(piece));
  }
  TORCH_CHECK(static_cast<int64_t>(pieces.size()) == count, "[optim_offload] ", tries,
              " draws from the held-out text gave ", pieces.size(), " of ", count,
              " pieces that training does not contain; give more text, longer pieces or fewer of ",
              "them (trainer.data.held_out_pieces)");
  return pieces;
}

}  // namespace optim_offload::train
