#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/model.h"
#include "support/snapshot.h"

namespace optim_offload::testing {

/// Equal dtype, sizes, strides and bits, wherever the tensors lie.
::testing::AssertionResult same_tensor(const torch::Tensor& expected, const torch::Tensor& actual);

::testing::AssertionResult same_fields(const Fields& expected, const Fields& actual);

/// Names the first group and parameter that differs.
::testing::AssertionResult same_snapshot(const Snapshot& expected, const Snapshot& actual);

/// The parameters' values, by name.
::testing::AssertionResult same_parameters(const Model& expected, const Model& actual);

}  // namespace optim_offload::testing
