// Finding the tensors in a parameter's state: paid once per parameter, or at each step where the
// base may replace its tensors.

#include <benchmark/benchmark.h>

#include "bench/model.h"
#include "bench/optimizers.h"
#include "state/state_tensors.h"

namespace {

using namespace optim_offload;

void find_tensors(benchmark::State& state, bench::OptimizerKind kind) {
  const auto parameters = bench::make_parameters(bench::decoder_spec("micro", 4, 32, 64),
                                                 c10::ScalarType::Float, c10::kCPU, 1);
  bench::fill_gradients(parameters, 2);
  const auto optimizer = bench::make_optimizer(kind, parameters);
  optimizer->step();
  size_t found = 0;
  for (auto _ : state) {
    for (const auto& item : optimizer->state()) {
      found += state::find_state_tensors(*item.second).size();
    }
  }
  if (found == 0) state.SkipWithError("no state tensor was found");
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * optimizer->state().size()));
}

BENCHMARK_CAPTURE(find_tensors, AdamW, bench::OptimizerKind::AdamW);
BENCHMARK_CAPTURE(find_tensors, SGD, bench::OptimizerKind::SGD);
BENCHMARK_CAPTURE(find_tensors, Muon, bench::OptimizerKind::Muon);

}  // namespace
