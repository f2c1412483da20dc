#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace optim_offload::train {

/// XXH64 with seed 0, the published one (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), fed in
/// parts of any size. It notices every change within one aligned word of 8 bytes, and any other but
/// for one in 2^64; against somebody who means to deceive it is no help. Takes 0.1 to 0.3 s a GB.
class Xxh64 {
 public:
  void update(std::string_view bytes);
  uint64_t digest() const;

 private:
  static constexpr size_t kStripe = 32;  // bytes

  /// Takes the whole stripes at the beginning.
  void stripes(std::string_view bytes);

  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  static constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
  std::array<uint64_t, 4> lanes_{kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1};
  std::array<char, kStripe> begun_{};  // the stripe that is not full yet
  uint64_t total_ = 0;                 // bytes
};

/// The XXH64 of a file as 16 hexadecimal digits, as `xxhsum -H64` prints it. Throws where the file
/// cannot be read.
std::string checksum_of(const std::filesystem::path& path);

}  // namespace optim_offload::train
