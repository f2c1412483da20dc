#include "train/data/piece_sampler.h"

#include <set>

#include "train/support.h"

namespace optim_offload::train {
namespace {

TEST(PieceSampler, DrawsTheSamePieceAtTheSamePosition) {
  const TextCorpus corpus({sample_text(4000)}, 256, 0.1);
  const PieceSampler first(corpus, corpus.training(), {4, 20}, 3);
  std::vector<std::string> pieces;
  for (int64_t i = 0; i < 200; ++i) pieces.push_back(first.piece(i));
  // A run that resumes at piece 120 reads on from there and nowhere else.
  const PieceSampler resumed(corpus, corpus.training(), {4, 20}, 3);
  for (int64_t i = 120; i < 200; ++i) EXPECT_EQ(resumed.piece(i), pieces[i]);
  const PieceSampler other(corpus, corpus.training(), {4, 20}, 4);
  int same = 0;
  for (int64_t i = 0; i < 200; ++i) same += other.piece(i) == pieces[i];
  EXPECT_LT(same, 5);
}

TEST(PieceSampler, UsesAllLengthsAndOnlyItsRanges) {
  const TextCorpus corpus({sample_text(4000)}, 256, 0.2);
  const PieceSampler sampler(corpus, corpus.training(), {4, 9}, 3);
  std::set<size_t> lengths;
  for (int64_t i = 0; i < 500; ++i) {
    const auto piece = sampler.piece(i);
    lengths.insert(piece.size());
    EXPECT_TRUE(corpus.occurs_in_training(piece)) << piece;
  }
  EXPECT_EQ(lengths, (std::set<size_t>{4, 5, 6, 7, 8, 9}));
}

TEST(PieceSampler, ReachesBothEndsOfEachRange) {
  const TextCorpus corpus({"abcdefghij"
                           "0123456789"},
                          10, 0.5);
  ASSERT_EQ(corpus.training().size(), 1u);
  const PieceSampler sampler(corpus, corpus.training(), {8, 8}, 0);
  std::set<std::string> pieces;
  for (int64_t i = 0; i < 100; ++i) pieces.insert(sampler.piece(i));
  EXPECT_EQ(pieces, (std::set<std::string>{"abcdefgh", "bcdefghi", "cdefghij"}));
}

TEST(PieceSampler, RefusesLengthsThatNoRangeHas) {
  const TextCorpus corpus({sample_text(4000)}, 256, 0.1);
  EXPECT_TRUE(contains(error_of([&] {
                         PieceSampler(corpus, corpus.held_out(), {4, 300}, 0);
                       }),
                       "no range of the text has 300 bytes"));
  EXPECT_TRUE(contains(error_of([&] {
                         PieceSampler(corpus, corpus.training(), {9, 4}, 0);
                       }),
                       "from 9 to 4 bytes"));
}

TEST(HeldOutPieces, AreDifferentAndUnknownToTraining) {
  const TextCorpus corpus({sample_text(9000)}, 256, 0.1);
  const auto pieces = held_out_pieces(corpus, {4, 16}, 60, 11);
  EXPECT_EQ(pieces.size(), 60u);
  EXPECT_EQ(std::set<std::string>(pieces.begin(), pieces.end()).size(), 60u);
  for (const auto& piece : pieces) EXPECT_FALSE(corpus.occurs_in_training(piece)) << piece;
  EXPECT_EQ(held_out_pieces(corpus, {4, 16}, 60, 11), pieces);
}

TEST(HeldOutPieces, FailWhereTheTextRepeatsItself) {
  std::string text;
  while (text.size() < 4000) text += "again and ";
  const TextCorpus corpus({text}, 250, 0.1);
  EXPECT_TRUE(contains(error_of([&] {
                         held_out_pieces(corpus, {4, 16}, 10, 0);
                       }),
                       "gave 0 of 10 pieces"));
}

}  // namespace
}  // namespace optim_offload::train
