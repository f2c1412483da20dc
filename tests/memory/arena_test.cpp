// Where state rests: which blocks lie side by side, and when slabs are made.
#include "memory/arena.h"

#include <gtest/gtest.h>

#include "fault.h"

namespace optim_offload::memory {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// Takes no memory of the system's before it is written to.
at::Tensor allocate(Arena& arena, int64_t bytes) {
  return arena.allocate({bytes}, {1}, at::TensorOptions().dtype(at::kByte), LockFor::Nobody);
}

std::byte* begin_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

TEST(Arena, WhatIsExpectedTogetherLiesSideBySide) {
  Arena arena(PinMemory::Off);
  arena.expect([] { return std::vector<size_t>{256, 512, 256}; });
  const auto first = allocate(arena, 200);
  const auto second = allocate(arena, 512);
  const auto third = allocate(arena, 256);
  EXPECT_EQ(begin_of(second), begin_of(first) + 256) << "aligned";
  EXPECT_EQ(begin_of(third), begin_of(second) + 512);
}

TEST(Arena, ABlockOutlivesTheArena) {
  at::Tensor block;
  {
    Arena arena(PinMemory::Off);
    block = allocate(arena, 4096);
  }
  block.fill_(7);
  EXPECT_EQ(block.sum().item<int64_t>(), 7 * 4096);
}

/// Tensors of 600 MiB, of which each fills a slab of its own.
std::vector<at::Tensor> allocate_three_slabs(Arena& arena) {
  arena.expect([] { return std::vector<size_t>(3, 600 * kMiB); });
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 3; ++i) tensors.push_back(allocate(arena, 600 * kMiB));
  return tensors;
}

TEST(Arena, SlabsAreMadeInAdvance) {
  Arena arena(PinMemory::Off);
  const ScopedFault none(FaultSite::Thread, /*nth=*/100);
  const auto tensors = allocate_three_slabs(arena);
  EXPECT_EQ(none.calls(), 2) << "behind the first and the second";
  EXPECT_EQ(arena.pageable_bytes(), size_t{3} * 600 * kMiB);
}

TEST(Arena, WorksWhereNoThreadCanBeHad) {
  Arena arena(PinMemory::Off);
  const ScopedFault fault(FaultSite::Thread, /*nth=*/1, /*lasting=*/true);
  const auto tensors = allocate_three_slabs(arena);
  EXPECT_TRUE(fault.hit());
  EXPECT_EQ(arena.pageable_bytes(), size_t{3} * 600 * kMiB);
  for (const auto& tensor : tensors) {
    EXPECT_EQ(tensor[0].item<int>(), 0);
    EXPECT_EQ(tensor[-1].item<int>(), 0);
  }
}

// A slab that could not be made in advance is an error of the allocation that needs it, once.
TEST(Arena, AFailureInAdvanceComesWhenTheSlabIsNeeded) {
  Arena arena(PinMemory::Off);
  arena.expect([] { return std::vector<size_t>(2, 600 * kMiB); });
  const ScopedFault fault(FaultSite::HostMemory, /*nth=*/2);
  const auto first = allocate(arena, 600 * kMiB);
  EXPECT_THROW(allocate(arena, 600 * kMiB), c10::Error);
  EXPECT_NO_THROW(allocate(arena, 600 * kMiB));
}

}  // namespace
}  // namespace optim_offload::memory
