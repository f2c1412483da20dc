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

// What xxhsum -H64 of Debian's package xxhash 0.8.1 prints.
TEST(ChecksumOf, IsWhatXxhsumPrints) {
  const std::vector<std::pair<size_t, std::string>> expected = {
      {0, "ef46db3751d8e999"},  {1, "e934a84adb052768"},   {3, "e5c7bb4533bc65dd"},
      {31, "c346d2b59b4d8ee1"}, {32, "cbf59c5116ff32b4"},  {33, "0c535d1acafb8ead"},
      {63, "e26aa9e2a95f8e4f"}, {100, "6ac1e58032166597"}, {256, "1facbe8406cd904b"}};
  const TempDir dir;
  for (const auto& [bytes, digits] : expected) {
    write_text(dir / "file", counted(bytes));
    EXPECT_EQ(checksum_of(dir / "file"), digits) << bytes;
  }
}

// Files are read in parts of 1 MiB.
TEST(ChecksumOf, SeesEachPart) {
  const TempDir dir;
  auto text = counted((size_t{2} << 20) + 33);
  write_text(dir / "file", text);
  const auto whole = checksum_of(dir / "file");
  for (const size_t place : {size_t{0}, (size_t{1} << 20) - 1, size_t{1} << 20, text.size() - 1}) {
    text[place] ^= 1;
    write_text(dir / "file", text);
    EXPECT_NE(checksum_of(dir / "file"), whole) << place;
    text[place] ^= 1;
  }
  write_text(dir / "file", text);
  EXPECT_EQ(checksum_of(dir / "file"), whole);
}

TEST(ChecksumOf, WhatCannotBeReadIsAnError) {
  const TempDir dir;
  EXPECT_TRUE(contains(error_of([&] { checksum_of(dir / "none"); }), "No such file"));
  EXPECT_TRUE(contains(error_of([&] { checksum_of(dir.path()); }), "Is a directory"));
}

}  // namespace
}  // namespace optim_offload::train
