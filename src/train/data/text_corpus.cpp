#include "train/data/text_corpus.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <c10/util/Exception.h>

#include "config/utf8.h"

namespace optim_offload::train {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  TORCH_CHECK(
      in.good() && !std::filesystem::is_directory(path), "[optim_offload] cannot read the text ",
      path.string(),
      "; name readable UTF-8 files in trainer.data.files (those of /usr/share/common-licenses ",
      "come with Debian's package base-files)");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  TORCH_CHECK(!in.bad(), "[optim_offload] reading the text ", path.string(),
              " failed; check the disk and the file");
  TORCH_CHECK(!text.empty(), "[optim_offload] the text ", path.string(),
              " is empty; name another file in trainer.data.files");
  const int64_t bad = find_invalid_utf8(text);
  TORCH_CHECK(bad < 0, "[optim_offload] the text ", path.string(), " is not UTF-8 (at byte ", bad,
              " of ", text.size(), "); convert it, for example with iconv");
  return text;
}

void append(std::vector<TextCorpus::Span>& spans, TextCorpus::Span span, bool join) {
  if (join && !spans.empty() && spans.back().end == span.begin) {
    spans.back().end = span.end;
  } else {
    spans.push_back(span);
  }
}

}  // namespace

TextCorpus TextCorpus::load(const std::vector<std::filesystem::path>& files, int64_t block_bytes,
                            double held_out_fraction) {
  std::vector<std::string> texts;
  texts.reserve(files.size());
  for (const auto& file : files) texts.push_back(read_text(file));
  return TextCorpus(texts, block_bytes, held_out_fraction);
}

TextCorpus::TextCorpus(const std::vector<std::string>& texts, int64_t block_bytes,
                       double held_out_fraction) {
  TORCH_CHECK(block_bytes > 0, "[optim_offload] text cannot be cut into blocks of ", block_bytes,
              " bytes; set a positive block size");
  int64_t block = 0;
  for (const auto& text : texts) {
    const auto first = static_cast<int64_t>(text_.size());
    const auto last = first + static_cast<int64_t>(text.size());
    text_ += text;
    for (int64_t begin = first; begin < last; begin += block_bytes, ++block) {
      const Span span{begin, std::min(begin + block_bytes, last)};
      const auto index = static_cast<double>(block);
      const bool held_out =
          std::floor((index + 1) * held_out_fraction) > std::floor(index * held_out_fraction);
      append(held_out ? held_out_ : training_, span, /*join=*/begin > first);
    }
  }
  TORCH_CHECK(!training_.empty() && !held_out_.empty(), "[optim_offload] ", text_.size(),
              " bytes of text in ", block, " blocks of ", block_bytes,
              " leave no block to train on or none to hold out; give more text or smaller blocks");
}

bool TextCorpus::occurs_in_training(std::string_view piece) const {
  return std::any_of(training_.begin(), training_.end(), [&](const Span& span) {
    return text(span).find(piece) != std::string_view::npos;
  });
}

}  // namespace optim_offload::train
