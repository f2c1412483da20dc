#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace optim_offload::train {

/// Text cut into blocks, of which an even part is held out from training.
///
/// Each file is cut on its own, so that no block spans two files. Block i of all is held out
/// where floor((i + 1) * fraction) > floor(i * fraction): spread over all files, and the same
/// in every run.
class TextCorpus {
 public:
  /// A byte range of text().
  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
  };

  /// Reads UTF-8 files. Throws where one is missing, unreadable, empty or not UTF-8.
  static TextCorpus load(const std::vector<std::filesystem::path>& files, int64_t block_bytes,
                         double held_out_fraction);

  /// The same of texts in memory. Throws where training or held-out part would be empty.
  TextCorpus(const std::vector<std::string>& texts, int64_t block_bytes, double held_out_fraction);

  std::string_view text() const { return text_; }
  std::string_view text(Span span) const {
    return std::string_view(text_).substr(span.begin, span.size());
  }

  /// Ranges to train on; neighbouring blocks of one file are joined.
  const std::vector<Span>& training() const { return training_; }

  /// Ranges that are never trained on; disjoint from training().
  const std::vector<Span>& held_out() const { return held_out_; }

  /// Whether `piece` occurs in full within a training range.
  bool occurs_in_training(std::string_view piece) const;

 private:
  std::string text_;
  std::vector<Span> training_;
  std::vector<Span> held_out_;
};

}  // namespace optim_offload::train
