#include "plan/piece.h"

#include <algorithm>

#include "align.h"

namespace optim_offload::plan {
namespace {

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

void append_tiles(std::vector<Piece>& pieces, const Chunk& chunk, size_t chunk_index, size_t param,
                  const ParamSize& size, size_t piece_bytes) {
  const int64_t length = tile_length(size, piece_bytes);
  const int64_t tiles = ceil_div(size.numel, length);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t begin = tile * length;
    const int64_t end = std::min(begin + length, size.numel);
    const double share = static_cast<double>(end - begin) / static_cast<double>(size.numel);
    const auto bytes = static_cast<size_t>(static_cast<double>(size.state_bytes) * share);
    pieces.push_back(
        {chunk.device, chunk_index, align_up(bytes), {Part{param, begin, end, tile, tiles}}});
  }
}

}  // namespace

std::vector<Piece> plan_pieces(const std::vector<Chunk>& chunks,
                               const std::vector<ParamSize>& sizes, size_t piece_bytes) {
  std::vector<Piece> pieces;
  bool open = false;  // whether the last piece takes further parameters
  for (size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[c];
    for (const size_t param : chunk.params) {
      const ParamSize& size = sizes[param];
      if (size.tileable && size.state_bytes > piece_bytes && size.numel > kTileAlignment) {
        append_tiles(pieces, chunk, c, param, size, piece_bytes);
        open = false;
        continue;
      }
      if (!open || pieces.back().device != chunk.device ||
          pieces.back().bytes + size.state_bytes > piece_bytes) {
        pieces.push_back({chunk.device, c, 0, {}});
        open = true;
      }
      pieces.back().bytes += size.state_bytes;
      pieces.back().parts.push_back(Part{param, 0, size.numel, 0, 1});
    }
  }
  return pieces;
}

}  // namespace optim_offload::plan
