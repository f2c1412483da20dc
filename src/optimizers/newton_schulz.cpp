#include "optimizers/newton_schulz.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

namespace optim_offload {

at::Tensor orthogonalize(const at::Tensor& update,
                         const std::tuple<double, double, double>& coefficients, int64_t steps,
                         double eps) {
  TORCH_CHECK(update.dim() == 2, "[optim_offload] Muon orthogonalizes matrices, not shape ",
              update.sizes(), "; put this parameter in a group marked adamw(true)");
  const auto [a, b, c] = coefficients;
  // The Gram matrix is of the shorter side.
  const bool tall = update.size(0) > update.size(1);
  at::Tensor x = update.to(at::kBFloat16);
  if (tall) x = x.t();
  x = x.div(x.norm().clamp_min(eps));
  for (int64_t i = 0; i < steps; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor polynomial = at::addmm(gram, gram, gram, /*beta=*/b, /*alpha=*/c);
    x = at::addmm(x, polynomial, x, /*beta=*/a);
  }
  return tall ? x.t() : x;
}

double adjusted_lr(double lr, const std::string& adjust_lr_fn, at::IntArrayRef shape) {
  const auto rows = static_cast<double>(shape[0]);
  const auto columns = static_cast<double>(shape[1]);
  if (adjust_lr_fn == "match_rms_adamw") return lr * (0.2 * std::sqrt(std::max(rows, columns)));
  return lr * std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace optim_offload
