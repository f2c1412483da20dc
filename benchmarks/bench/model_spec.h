#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace optim_offload::bench {

/// A parameter's name and sizes; `rows x cols`, or one dimension where `cols` is 0.
struct ParameterSpec {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t numel() const { return cols == 0 ? rows : rows * cols; }
};

/// A synthetic model: only names and shapes, so that it is known what a run will hold before any
/// memory is taken.
struct ModelSpec {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  std::vector<ParameterSpec> parameters;

  int64_t numel() const;
};

/// A decoder of `layers` layers: per layer four h x h, two 4h x h, one h x 4h, two h; then an
/// embedding and a head of vocab x h, and one norm of h. Throws `c10::Error` where a size is not
/// positive.
ModelSpec decoder_spec(const std::string& name, int64_t layers, int64_t hidden, int64_t vocab);

/// The model called `name`: small, medium, large, embedding (one 500,000 x 4,096 matrix) or tensors
/// (10,000 matrices of 64 KiB in fp32). Throws `c10::Error` for any other name.
ModelSpec named_spec(const std::string& name);

/// The names that named_spec() knows.
const std::vector<std::string>& spec_names();

}  // namespace optim_offload::bench
