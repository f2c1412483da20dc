// Getting host memory from the system, touched and (where there is a CUDA device) page-locked.

#include <benchmark/benchmark.h>

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "memory/host_region.h"

namespace {

using namespace optim_offload;

bool has_device() { return at::hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0; }

void make_region(benchmark::State& state, memory::LockFor lock_for, PinMemory pin) {
  if (lock_for == memory::LockFor::Cuda) {
    if (!has_device()) {
      state.SkipWithError("no CUDA device to lock pages for");
      return;
    }
    at::globalContext().lazyInitDevice(at::kCUDA);
  }
  const auto bytes = static_cast<size_t>(state.range(0)) << 20;
  for (auto _ : state) {
    const memory::HostRegion region(bytes, lock_for, pin);
    benchmark::DoNotOptimize(region.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

// Touched as for locking, but not locked. (Memory that is to stay pageable is not even touched.)
BENCHMARK_CAPTURE(make_region, touched, memory::LockFor::Simulated, PinMemory::Preferred)
    ->Arg(64)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(make_region, page_locked, memory::LockFor::Cuda, PinMemory::Required)
    ->Arg(64)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
