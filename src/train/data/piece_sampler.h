#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/data/text_corpus.h"

namespace optim_offload::train {

/// Lengths of pieces in bytes, both ends included.
struct PieceLengths {
  int64_t min = 8;
  int64_t max = 24;
};

/// Draws pieces of text from some ranges of a corpus. Piece `index` is a pure function of the
/// seed and the index: reading on from a position is all that resuming needs.
class PieceSampler {
 public:
  /// `corpus` must outlive the sampler. Ranges shorter than lengths.max are skipped; throws where
  /// none is left.
  PieceSampler(const TextCorpus& corpus, const std::vector<TextCorpus::Span>& spans,
               PieceLengths lengths, uint64_t seed);

  std::string piece(int64_t index) const;

 private:
  const TextCorpus* corpus_;
  std::vector<TextCorpus::Span> spans_;
  std::vector<int64_t> starts_before_;  // places for the longest piece in the spans before this one
  int64_t starts_ = 0;
  PieceLengths lengths_;
  uint64_t seed_;
};

/// `count` different pieces of the corpus's held-out ranges that occur nowhere in its training
/// ranges (texts repeat themselves, licences most of all). The same for the same seed. Throws
/// where the held-out text does not have that many.
std::vector<std::string> held_out_pieces(const TextCorpus& corpus, PieceLengths lengths,
                                         int64_t count, uint64_t seed);

}  // namespace optim_offload::train
