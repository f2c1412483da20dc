#include "train/checksum.h"

#include <numeric>

#include "train/support.h"

namespace optim_offload::train {
namespace {

/// Bytes 0, 1, 2 and so on.
std::string counted(size_t bytes) {
  std::string text(bytes, '\0');
  std::iota(text.begin(), text.end(), '\0');
  return text;
}

uint64_t digest_of(std::string_view bytes) {
  Xxh64 hash;
  hash.update(bytes);
  return hash.digest();
}

// What xxhsum -H64 of Debian's package xxhash 0.8.1 prints.
TEST(Xxh64, IsThePublishedOne) {
  const std::vector<std::pair<size_t, uint64_t>> expected = {
      {0, 0xef46db3751d8e999U},  {1, 0xe934a84adb052768U},   {3, 0xe5c7bb4533bc65ddU},
      {4, 0xffced8604453cc1eU},  {7, 0x14cc643f630c72d2U},   {8, 0x884a173614b81b8dU},
      {12, 0x424af23f1f08dca5U}, {31, 0xc346d2b59b4d8ee1U},  {32, 0xcbf59c5116ff32b4U},
      {33, 0x0c535d1acafb8eadU}, {47, 0x0d9883a03e7bfbb8U},  {63, 0xe26aa9e2a95f8e4fU},
      {64, 0xf7c67301db6713f0U}, {100, 0x6ac1e58032166597U}, {256, 0x1facbe8406cd904bU}};
  for (const auto& [bytes, digest] : expected) {
    EXPECT_EQ(digest_of(counted(bytes)), digest) << bytes;
  }
}

TEST(Xxh64, DoesNotDependOnTheParts) {
  const auto text = counted(200);
  const auto whole = digest_of(text);
  for (size_t part = 1; part < text.size(); ++part) {
    Xxh64 hash;
    for (size_t begin = 0; begin < text.size(); begin += part) {
      hash.update(std::string_view(text).substr(begin, part));
    }
    EXPECT_EQ(hash.digest(), whole) << part;
  }
}

TEST(ChecksumOf, ReadsFilesOfAnySize) {
  const TempDir dir;
  for (const size_t bytes : {0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) + 33}) {
    const auto text = counted(bytes);
    write_text(dir / "file", text);
    const auto sum = checksum_of(dir / "file");
    EXPECT_EQ(sum.size(), 16u);
    EXPECT_EQ(std::stoull(sum, nullptr, 16), digest_of(text)) << bytes;
  }
  write_text(dir / "file", "one");
  EXPECT_EQ(checksum_of(dir / "file"), "363b02a42408a1f6");
}

TEST(ChecksumOf, WhatCannotBeReadIsAnError) {
  const TempDir dir;
  EXPECT_TRUE(contains(error_of([&] { checksum_of(dir / "none"); }), "No such file"));
  EXPECT_TRUE(contains(error_of([&] { checksum_of(dir.path()); }), "Is a directory"));
}

}  // namespace
}  // namespace optim_offload::train
