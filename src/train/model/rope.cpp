#include "train/model/rope.h"

#include <cmath>

#include <c10/util/Exception.h>

namespace optim_offload::train {

Rope::Rope(int64_t head_dim, int64_t max_positions, double theta, torch::Device device) {
  TORCH_CHECK(head_dim > 0 && head_dim % 2 == 0, "[optim_offload] RoPE turns pairs of dimensions ",
              "(head_dim = ", head_dim, "); set an even head_dim");
  // In fp64 on the CPU, so that every device gets the same tables.
  const auto f64 = torch::TensorOptions().dtype(torch::kFloat64);
  const auto exponents = torch::arange(0, head_dim, 2, f64) * (-std::log(theta) / head_dim);
  const auto angles = torch::outer(torch::arange(max_positions, f64), exponents.exp());
  const auto both = torch::cat({angles, angles}, -1);  // (max_positions, head_dim)
  cos_ = both.cos().to(device, torch::kFloat32);
  sin_ = both.sin().to(device, torch::kFloat32);
}

torch::Tensor Rope::apply(const torch::Tensor& x, int64_t first_position) const {
  const int64_t length = x.size(-2);
  TORCH_CHECK(first_position >= 0 && first_position + length <= cos_.size(0),
              "[optim_offload] positions ", first_position, " to ", first_position + length - 1,
              " are outside of RoPE's ", cos_.size(0), "; raise max_positions");
  const auto cos = cos_.narrow(0, first_position, length);
  const auto sin = sin_.narrow(0, first_position, length);
  const auto wide = x.to(torch::kFloat32);
  const auto halves = wide.chunk(2, -1);
  const auto turned = torch::cat({-halves[1], halves[0]}, -1);
  return (wide * cos + turned * sin).to(x.scalar_type());
}

}  // namespace optim_offload::train
