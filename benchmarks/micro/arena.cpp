// Handing out blocks of host memory in the first step, apart from getting the memory.

#include <benchmark/benchmark.h>

#include <vector>

#include "memory/arena.h"

namespace {

using namespace optim_offload;

// Blocks of `range(0)` KiB, as many as fill 64 MiB, all of them alive at once.
void allocate(benchmark::State& state) {
  const int64_t elements = state.range(0) * 1024 / 4;
  const int64_t blocks = (int64_t{64} << 10) / state.range(0);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  memory::Arena arena(PinMemory::Off);
  const auto blocks_and_anchor = static_cast<size_t>(blocks) + 1;
  arena.expect([blocks_and_anchor, elements] {
    std::vector<size_t> bytes(blocks_and_anchor, static_cast<size_t>(elements) * 4);
    bytes.front() = 256;
    return bytes;
  });
  // Keeps the slab alive from round to round.
  const auto first = arena.allocate({1}, {1}, options, memory::LockFor::Nobody);
  std::vector<at::Tensor> held;
  for (auto _ : state) {
    for (int64_t i = 0; i < blocks; ++i) {
      held.push_back(arena.allocate({elements}, {1}, options, memory::LockFor::Nobody));
    }
    held.clear();
  }
  state.SetItemsProcessed(state.iterations() * blocks);
}

BENCHMARK(allocate)->RangeMultiplier(16)->Range(4, 65536)->Unit(benchmark::kMicrosecond);

}  // namespace
