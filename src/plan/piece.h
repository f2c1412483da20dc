#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/core/Device.h>

#include "plan/chunk.h"

namespace optim_offload::plan {

/// The size of one parameter and of its state.
struct ParamSize {
  int64_t numel = 0;
  size_t state_bytes = 0;  ///< Aligned bytes that visit the device; 0 where nothing does.
  bool tileable = false;   ///< May be cut into flat slices.
};

/// A whole parameter, or a tile: elements [begin, end) of it in memory order.
struct Part {
  size_t param = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t tile = 0;
  int64_t tiles = 1;

  bool is_tile() const { return tiles > 1; }
  bool is_last_tile() const { return tile + 1 == tiles; }
};

/// The unit that is copied and stepped.
struct Piece {
  c10::Device device{c10::DeviceType::CPU};
  size_t chunk = 0;  ///< The chunk of its first part.
  size_t bytes = 0;
  std::vector<Part> parts;
};

/// Elements to which tiles are aligned: 256 bytes of fp32, so that vector code meets the same
/// lanes in a tile as in the whole.
inline constexpr int64_t kTileAlignment = 64;

/// Cuts chunks into pieces of at most `piece_bytes`, about in order. Parameters of one device share
/// pieces, also across chunks: a small one waits for company, so that no small piece lies between
/// large ones and keeps a slot from them. A parameter whose state alone is larger becomes tiles,
/// all full but the last or the last two, or, where it may not be cut, a piece of its own above the
/// bound.
std::vector<Piece> plan_pieces(const std::vector<Chunk>& chunks,
                               const std::vector<ParamSize>& sizes, size_t piece_bytes);

}  // namespace optim_offload::plan
