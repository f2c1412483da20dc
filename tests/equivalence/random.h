#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace optim_offload::testing {

/// Draws that one seed determines on every platform (std's distributions do not promise that).
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}

  uint64_t bits() { return engine_(); }

  /// In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }

  /// In [0, 1).
  double real() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  bool chance(double probability) { return real() < probability; }

  template <typename T>
  T pick(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(integer(0, static_cast<int64_t>(choices.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace optim_offload::testing
