#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

#include <c10/util/Exception.h>

namespace optim_offload::bench {

double quantile(std::vector<double> values, double q) {
  TORCH_CHECK(!values.empty(), "[optim_offload] no values to summarize; time at least one step");
  TORCH_CHECK(q >= 0 && q <= 1, "[optim_offload] quantile ", q, " is not within 0 and 1");
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, values.size() - 1);
  const double share = position - static_cast<double>(below);
  return values[below] + share * (values[above] - values[below]);
}

Summary summarize(const std::vector<double>& values) {
  Summary summary;
  summary.count = static_cast<int64_t>(values.size());
  summary.min = quantile(values, 0);
  summary.p10 = quantile(values, 0.1);
  summary.median = quantile(values, 0.5);
  summary.p90 = quantile(values, 0.9);
  summary.max = quantile(values, 1);
  return summary;
}

}  // namespace optim_offload::bench
