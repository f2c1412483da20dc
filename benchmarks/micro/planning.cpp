// From names to chunks to pieces: paid when parameters, gradients' presence or state change.

#include <benchmark/benchmark.h>

#include "bench/model_spec.h"
#include "optim_offload/options.h"
#include "plan/chunk.h"
#include "plan/piece.h"

namespace {

using namespace optim_offload;

std::vector<plan::NamedParam> names_of(const bench::ModelSpec& spec) {
  std::vector<plan::NamedParam> names;
  for (const auto& parameter : spec.parameters) {
    names.push_back({parameter.name, c10::Device(c10::kCPU)});
  }
  return names;
}

void plan_chunks(benchmark::State& state, const char* model) {
  const auto names = names_of(bench::named_spec(model));
  const std::string pattern = OffloadOptions().layer_pattern();
  for (auto _ : state) benchmark::DoNotOptimize(plan::plan_chunks(names, pattern));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(names.size()));
}

void plan_pieces(benchmark::State& state, const char* model) {
  const auto spec = bench::named_spec(model);
  const auto chunks = plan::plan_chunks(names_of(spec), OffloadOptions().layer_pattern());
  std::vector<plan::ParamSize> sizes;
  for (const auto& parameter : spec.parameters) {
    sizes.push_back({parameter.numel(), static_cast<size_t>(8 * parameter.numel()), true});
  }
  const auto bytes = static_cast<size_t>(OffloadOptions().piece_bytes());
  size_t pieces = 0;
  for (auto _ : state) pieces = plan::plan_pieces(chunks, sizes, bytes).size();
  state.counters["pieces"] = static_cast<double>(pieces);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(sizes.size()));
}

BENCHMARK_CAPTURE(plan_chunks, large, "large")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_chunks, tensors, "tensors")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_pieces, large, "large")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_pieces, tensors, "tensors")->Unit(benchmark::kMicrosecond);

}  // namespace
