#pragma once

#include <string>

#include <gtest/gtest.h>

#include "support/twins.h"

namespace optim_offload::testing {

/// What a wrapped twin held before a step that is to fail.
class StepStart {
 public:
  explicit StepStart(const Twins& twins);

  /// Groups and options are the same objects as before, and options have the same values.
  void expect_groups(const Twins& twins) const;

  /// After the wrapped twin's step failed with `error`, and the plain twin's was done: groups and
  /// options are the same objects as before; each parameter and its state are as before or as after
  /// the step, and of one that is cut into tiles so many elements from the first are as after it;
  /// what `error` says of pieces is true. Call with ASSERT_NO_FATAL_FAILURE.
  void expect_kept(const Twins& twins, const std::string& error, bool tiles) const;

 private:
  Model model_;
  Snapshot snapshot_;
  std::vector<torch::Tensor> members_;
  std::vector<const void*> options_;
};

}  // namespace optim_offload::testing
