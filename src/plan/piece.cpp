#include "plan/piece.h"

#include <algorithm>
#include <utility>

#include "align.h"

namespace optim_offload::plan {
namespace {

/// Pieces of whole parameters that take further ones.
constexpr size_t kOpenPieces = 3;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Elements per tile: as many as fit. All full tiles of a model so have one size, and with them the
/// base's temporaries, which the caching allocator then serves from the same few blocks; tiles of
/// equal size within each parameter would need blocks of many sizes.
int64_t tile_length(const ParamSize& size, size_t piece_bytes) {
  const double bytes_per_element =
      static_cast<double>(size.state_bytes) / static_cast<double>(size.numel);
  const auto fitting = static_cast<int64_t>(static_cast<double>(piece_bytes) / bytes_per_element);
  return std::max(fitting / kTileAlignment, int64_t{1}) * kTileAlignment;
}

/// Where each tile begins, and the end. A small rest is shared out among the last two tiles: as a
/// piece of its own it would hold a slot for which nothing is on the link.
std::vector<int64_t> cut(int64_t numel, int64_t length) {
  std::vector<int64_t> bounds;
  for (int64_t begin = 0; begin < numel; begin += length) bounds.push_back(begin);
  bounds.push_back(numel);
  const size_t tiles = bounds.size() - 1;
  const int64_t rest = numel - bounds[tiles - 1];
  if (tiles > 1 && rest < length / 4) {
    const int64_t half = ceil_div(ceil_div(length + rest, 2), kTileAlignment) * kTileAlignment;
    bounds[tiles - 1] = bounds[tiles - 2] + std::min(half, length);
  }
  return bounds;
}

class Planner {
 public:
  explicit Planner(size_t piece_bytes) : piece_bytes_(piece_bytes) {}

  void add_tiles(const Chunk& chunk, size_t chunk_index, size_t param, const ParamSize& size) {
    const auto bounds = cut(size.numel, tile_length(size, piece_bytes_));
    const auto tiles = static_cast<int64_t>(bounds.size()) - 1;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t begin = bounds[static_cast<size_t>(tile)];
      const int64_t end = bounds[static_cast<size_t>(tile) + 1];
      const double share = static_cast<double>(end - begin) / static_cast<double>(size.numel);
      const auto bytes = static_cast<size_t>(static_cast<double>(size.state_bytes) * share);
      pieces_.push_back(
          {chunk.device, chunk_index, align_up(bytes), {Part{param, begin, end, tile, tiles}}});
    }
  }

  /// Into the first open piece that has room for it. With one open piece alone, what lies between
  /// two large parameters would be a piece by itself, however small.
  void add_whole(const Chunk& chunk, size_t chunk_index, size_t param, const ParamSize& size) {
    auto piece = std::find_if(open_.begin(), open_.end(), [&](const Piece& p) {
      return p.device == chunk.device && p.bytes + size.state_bytes <= piece_bytes_;
    });
    if (piece == open_.end()) {
      if (open_.size() == kOpenPieces) close_fullest();
      open_.push_back({chunk.device, chunk_index, 0, {}});
      piece = std::prev(open_.end());
    }
    piece->bytes += size.state_bytes;
    piece->parts.push_back(Part{param, 0, size.numel, 0, 1});
    if (piece->bytes >= piece_bytes_) close(piece);
  }

  /// The smallest come last, where nothing goes up any more that they could hold back.
  std::vector<Piece> finish() {
    while (!open_.empty()) close_fullest();
    return std::move(pieces_);
  }

 private:
  void close_fullest() {
    close(std::max_element(open_.begin(), open_.end(),
                           [](const Piece& a, const Piece& b) { return a.bytes < b.bytes; }));
  }
  void close(std::vector<Piece>::iterator piece) {
    pieces_.push_back(std::move(*piece));
    open_.erase(piece);
  }

  size_t piece_bytes_;
  std::vector<Piece> pieces_;
  std::vector<Piece> open_;  // in the order of their first parameters
};

}  // namespace

std::vector<Piece> plan_pieces(const std::vector<Chunk>& chunks,
                               const std::vector<ParamSize>& sizes, size_t piece_bytes) {
  Planner planner(piece_bytes);
  for (size_t c = 0; c < chunks.size(); ++c) {
    for (const size_t param : chunks[c].params) {
      const ParamSize& size = sizes[param];
      if (size.tileable && size.state_bytes > piece_bytes && size.numel > kTileAlignment) {
        planner.add_tiles(chunks[c], c, param, size);
      } else {
        planner.add_whole(chunks[c], c, param, size);
      }
    }
  }
  return planner.finish();
}

}  // namespace optim_offload::plan
