#pragma once

#include <cstdint>

namespace optim_offload::train {

/// A random number that is a pure function of (seed, index): SplitMix64 (Steele, Lea and Flood,
/// 2014). No state, so a data position is one integer and a resumed run draws the same pieces.
inline uint64_t random_at(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// `bits` mapped to 0 .. n - 1. Off from uniform by less than n / 2^64.
inline int64_t below(uint64_t bits, int64_t n) {
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(bits) * static_cast<unsigned __int128>(n)) >> 64);
}

}  // namespace optim_offload::train
