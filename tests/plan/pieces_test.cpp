// How chunks become pieces: all of every parameter, once, within the bound, and no small piece
// between large ones.
#include "plan/piece.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace optim_offload::plan {
namespace {

constexpr size_t kPiece = 64 << 10;
const c10::Device kFirst(c10::kCUDA, 0);
const c10::Device kSecond(c10::kCUDA, 1);

// State of eight bytes an element, as Adam makes of fp32.
ParamSize of_bytes(size_t bytes, bool tileable = true) {
  return {static_cast<int64_t>(bytes / 8), bytes, tileable};
}

std::vector<Piece> plan(const std::vector<ParamSize>& sizes) {
  Chunk chunk{"misc", kFirst, std::vector<size_t>(sizes.size())};
  std::iota(chunk.params.begin(), chunk.params.end(), size_t{0});
  return plan_pieces({chunk}, sizes, kPiece);
}

std::vector<size_t> bytes_of(const std::vector<Piece>& pieces) {
  std::vector<size_t> bytes;
  for (const Piece& piece : pieces) bytes.push_back(piece.bytes);
  return bytes;
}

TEST(Pieces, SmallParametersBetweenLargeOnesShareOnePieceAtTheEnd) {
  std::vector<ParamSize> sizes;
  for (int layer = 0; layer < 5; ++layer) {
    sizes.push_back(of_bytes(256));
    sizes.push_back(of_bytes(2 * kPiece));
  }
  const auto pieces = plan(sizes);
  ASSERT_EQ(pieces.size(), 11u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(pieces[i].bytes, kPiece) << i;
  EXPECT_EQ(pieces.back().bytes, 5u * 256);
}

TEST(Pieces, AFullOneLeavesNoSmallOneBehind) {
  EXPECT_EQ(bytes_of(plan({of_bytes(256), of_bytes(kPiece), of_bytes(256), of_bytes(kPiece)})),
            (std::vector<size_t>{kPiece, kPiece, 512}));
}

TEST(Pieces, FirstRoomIsTaken) {
  const size_t large = kPiece - 1024;
  EXPECT_EQ(bytes_of(plan({of_bytes(large), of_bytes(2048), of_bytes(1024)})),
            (std::vector<size_t>{kPiece, 2048}));
}

TEST(Pieces, ASmallRestIsSharedByTheLastTwoTiles) {
  const auto pieces = plan({of_bytes(2 * kPiece + 1024)});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, kPiece);
  EXPECT_EQ(pieces[1].bytes, kPiece / 2 + 512);
  EXPECT_EQ(pieces[2].bytes, kPiece / 2 + 512);
}

TEST(Pieces, ALargeRestStays) {
  EXPECT_EQ(bytes_of(plan({of_bytes(kPiece + kPiece / 4)})),
            (std::vector<size_t>{kPiece, kPiece / 4}));
}

TEST(Pieces, WhatMayNotBeCutIsAboveTheBound) {
  EXPECT_EQ(bytes_of(plan({of_bytes(3 * kPiece, false)})), (std::vector<size_t>{3 * kPiece}));
}

TEST(Pieces, DevicesDoNotMix) {
  const Chunk first{"a", kFirst, {0, 2}}, second{"b", kSecond, {1, 3}};
  const auto pieces =
      plan_pieces({first, second}, std::vector<ParamSize>(4, of_bytes(256)), kPiece);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_NE(pieces[0].device, pieces[1].device);
  for (const Piece& piece : pieces) EXPECT_EQ(piece.bytes, 512u);
}

// Checks that the parts of each parameter are all of it, in order, with nothing between its tiles.
void expect_all_once(const std::vector<Piece>& pieces, const std::vector<ParamSize>& sizes) {
  std::vector<int64_t> covered(sizes.size(), 0), tiles(sizes.size(), 0);
  size_t before = sizes.size();
  for (const Piece& piece : pieces) {
    for (const Part& part : piece.parts) {
      EXPECT_EQ(part.begin, covered[part.param]);
      EXPECT_EQ(part.tile, tiles[part.param]++);
      EXPECT_EQ(part.is_last_tile(), part.end == sizes[part.param].numel);
      EXPECT_TRUE(part.end > part.begin || sizes[part.param].numel == 0);
      if (part.is_tile()) {
        EXPECT_EQ(piece.parts.size(), 1u);
        EXPECT_EQ(part.begin % kTileAlignment, 0);
        EXPECT_TRUE(part.tile == 0 || before == part.param);
      }
      covered[part.param] = part.end;
      before = part.param;
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(covered[i], sizes[i].numel) << i;
}

TEST(Pieces, RandomModelsAreCoveredWithinTheBound) {
  std::mt19937_64 random(7);
  for (int model = 0; model < 300; ++model) {
    SCOPED_TRACE(model);
    std::vector<ParamSize> sizes;
    for (size_t i = random() % 40; i > 0; --i) {
      const size_t most = size_t{1} << (random() % 20);
      sizes.push_back(of_bytes(256 * (random() % most / 256 + 1), random() % 4 != 0));
      if (random() % 8 == 0) sizes.back().state_bytes = 0;
    }
    const auto pieces = plan(sizes);
    expect_all_once(pieces, sizes);
    for (const Piece& piece : pieces) {
      const bool above = piece.parts.size() == 1 && !sizes[piece.parts.front().param].tileable;
      EXPECT_TRUE(above || piece.bytes <= kPiece) << piece.bytes;
    }
  }
}

}  // namespace
}  // namespace optim_offload::plan
