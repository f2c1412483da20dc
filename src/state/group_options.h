#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include "state/optimizer_data.h"

namespace optim_offload::state {

/// Lets every piece of a step see the groups' options as they were before the step, and leaves them
/// as after exactly one step.
///
/// A base may change options in step() (Muon counts steps there). So every piece gets a copy, made
/// before the step, except one piece per group, the last that holds parameters of it: that one gets
/// the group's own object, which so keeps its identity and is stepped once.
class GroupOptions {
 public:
  /// `last_piece[g]`: the last piece with parameters of group g, or the step's last piece.
  GroupOptions(Groups& groups, const std::vector<size_t>& last_piece);

  /// Puts the own objects back, also after a throw.
  ~GroupOptions();
  GroupOptions(const GroupOptions&) = delete;
  GroupOptions& operator=(const GroupOptions&) = delete;

  void before_piece(size_t piece);

  /// Throws where a group in `stepped` (those with parameters in the piece just stepped) ends with
  /// other options than it did after an earlier piece, naming group and values.
  void after_piece(const std::vector<size_t>& stepped);

 private:
  struct Kept {
    std::unique_ptr<torch::optim::OptimizerOptions> own;  // null while lent to its piece
    std::unique_ptr<torch::optim::OptimizerOptions> before;
    size_t last_piece = 0;
    std::string after;  // description after the first piece with parameters of the group
  };

  Groups& groups_;
  std::vector<Kept> kept_;
};

}  // namespace optim_offload::state
