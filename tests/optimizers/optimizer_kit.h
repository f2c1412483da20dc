#pragma once

// What tests of single optimizers share.

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <cstring>

namespace optim_offload {

/// Whether two tensors have the same dtype, shape and bits (NaN equal to itself, -0 not to 0).
inline ::testing::AssertionResult same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.defined() != b.defined()) return ::testing::AssertionFailure() << "only one is defined";
  if (!a.defined()) return ::testing::AssertionSuccess();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) {
    return ::testing::AssertionFailure()
           << a.toString() << a.sizes() << " against " << b.toString() << b.sizes();
  }
  const auto left = a.detach().cpu().contiguous();
  const auto right = b.detach().cpu().contiguous();
  const auto* l = static_cast<const char*>(left.data_ptr());
  const auto* r = static_cast<const char*>(right.data_ptr());
  const auto size = static_cast<int64_t>(left.element_size());
  for (int64_t i = 0; i < left.numel(); ++i) {
    if (std::memcmp(l + i * size, r + i * size, static_cast<size_t>(size)) != 0) {
      return ::testing::AssertionFailure()
             << "element " << i << ": " << left.view(-1)[i].item().toDouble() << " against "
             << right.view(-1)[i].item().toDouble();
    }
  }
  return ::testing::AssertionSuccess();
}

/// A parameter of the given shape with values from a formula, exact in any floating dtype.
inline torch::Tensor numbers(at::IntArrayRef shape, int64_t seed,
                             torch::Dtype dtype = torch::kFloat32) {
  const auto count = c10::multiply_integers(shape);
  const auto index = torch::arange(count, torch::kInt64);
  const auto integers = (index * 7919 + seed * 104729).remainder(2001) - 1000;
  return (integers.to(torch::kFloat64) / 1024).to(dtype).reshape(shape);
}

inline torch::Tensor parameter(at::IntArrayRef shape, int64_t seed,
                               torch::Dtype dtype = torch::kFloat32) {
  return numbers(shape, seed, dtype).requires_grad_(true);
}

/// The state of `param` in a FusedAdamW or an AdamW.
inline torch::optim::AdamWParamState& adamw_state(torch::optim::Optimizer& optimizer,
                                                  const torch::Tensor& param) {
  auto& state = *optimizer.state().at(param.unsafeGetTensorImpl());
  return static_cast<torch::optim::AdamWParamState&>(state);
}

inline bool has_cuda_device() {
  return at::hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0;
}

#define SKIP_WITHOUT_CUDA() \
  if (!has_cuda_device()) GTEST_SKIP() << "no CUDA device"

}  // namespace optim_offload
