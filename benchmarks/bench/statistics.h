#pragma once

#include <cstdint>
#include <vector>

namespace optim_offload::bench {

/// What is told of a series of times.
struct Summary {
  int64_t count = 0;
  double min = 0;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
  double max = 0;
};

/// The value below which a share `q` in [0, 1] of `values` lies, linear between neighbours. Throws
/// `c10::Error` where there are no values or `q` is out of range.
double quantile(std::vector<double> values, double q);

/// Throws `c10::Error` where there are no values.
Summary summarize(const std::vector<double>& values);

}  // namespace optim_offload::bench
