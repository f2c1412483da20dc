#include "train/checksum.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/error.h>

namespace optim_offload::train {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

constexpr size_t kBuffer = size_t{1} << 20;  // bytes

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

template <typename Word>
Word word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t round_of(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

void Xxh64::stripes(std::string_view bytes) {
  auto [a, b, c, d] = lanes_;  // a copy, which the compiler keeps in registers
  for (; bytes.size() >= kStripe; bytes.remove_prefix(kStripe)) {
    a = round_of(a, word_at<uint64_t>(bytes.data()));
    b = round_of(b, word_at<uint64_t>(bytes.data() + 8));
    c = round_of(c, word_at<uint64_t>(bytes.data() + 16));
    d = round_of(d, word_at<uint64_t>(bytes.data() + 24));
  }
  lanes_ = {a, b, c, d};
}

void Xxh64::update(std::string_view bytes) {
  const size_t begun = total_ % kStripe;
  total_ += bytes.size();
  if (begun > 0) {
    const size_t more = std::min(bytes.size(), kStripe - begun);
    bytes.copy(begun_.data() + begun, more);
    bytes.remove_prefix(more);
    if (begun + more < kStripe) return;
    stripes({begun_.data(), kStripe});
  }
  stripes(bytes);
  bytes.remove_prefix(bytes.size() - bytes.size() % kStripe);
  bytes.copy(begun_.data(), bytes.size());
}

uint64_t Xxh64::digest() const {
  uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) {
      hash = (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
    }
  }
  hash += total_;
  std::string_view rest(begun_.data(), total_ % kStripe);
  for (; rest.size() >= 8; rest.remove_prefix(8)) {
    hash ^= round_of(0, word_at<uint64_t>(rest.data()));
    hash = std::rotl(hash, 27) * kPrime1 + kPrime4;
  }
  if (rest.size() >= 4) {
    hash ^= word_at<uint32_t>(rest.data()) * kPrime1;
    hash = std::rotl(hash, 23) * kPrime2 + kPrime3;
    rest.remove_prefix(4);
  }
  for (const char byte : rest) {
    hash ^= static_cast<uint8_t>(byte) * kPrime5;
    hash = std::rotl(hash, 11) * kPrime1;
  }
  hash ^= hash >> 33;
  hash *= kPrime2;
  hash ^= hash >> 29;
  hash *= kPrime3;
  return hash ^ (hash >> 32);
}

std::string checksum_of(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto check = [&](bool good) {
    TORCH_CHECK(good, "[optim_offload] cannot read ", path.string(), " (",
                c10::utils::str_error(errno), "); check that it is there and may be read");
  };
  check(descriptor >= 0);
  Xxh64 hash;
  std::vector<char> buffer(kBuffer);
  ssize_t got = 0;
  while ((got = read(descriptor, buffer.data(), buffer.size())) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) hash.update({buffer.data(), static_cast<size_t>(got)});
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  check(got == 0);
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash.digest()));
  return digits;
}

}  // namespace optim_offload::train
