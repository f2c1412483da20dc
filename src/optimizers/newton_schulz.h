#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <tuple>

namespace optim_offload {

/// The matrix nearest to orthogonal in the direction of `update` (R, C), in bfloat16: `steps` times
/// X <- a X + (b XX' + c XX'XX') X from X = update / max(|update|, eps), with (a, b, c) the
/// coefficients. It ends as U S V' with singular values S near 1. The operations and their order
/// are those of Python's `torch.optim.Muon`. `update` is not changed.
at::Tensor orthogonalize(const at::Tensor& update,
                         const std::tuple<double, double, double>& coefficients, int64_t steps,
                         double eps);

/// `lr` scaled for a matrix of this shape; `MuonOptions::adjust_lr_fn` says how.
double adjusted_lr(double lr, const std::string& adjust_lr_fn, at::IntArrayRef shape);

}  // namespace optim_offload
