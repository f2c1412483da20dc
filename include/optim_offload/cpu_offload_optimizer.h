#pragma once

#include <memory>
#include <string>

#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include "optim_offload/export.h"
#include "optim_offload/options.h"
#include "optim_offload/stats.h"

namespace optim_offload {

/// An optimizer whose state rests in pinned host memory and visits the GPU only inside step().
///
/// It wraps any `torch::optim::Optimizer`, called the base, and goes wherever an `Optimizer&` goes.
/// Parameters and gradients stay where they are. The results are the base's own, bit for bit.
///
/// Between calls the parameter groups and the state belong to this object: read and change them
/// here (`param_groups()`, `state()`, a scheduler), not on the base. State tensors then lie on the
/// host; do not keep device views of them.
///
/// Streams: the caller's current stream on each device is the compute stream. Gradients queued on
/// it are waited for, and work queued on it after step() sees the new weights. step() returns when
/// all copies are finished.
///
/// Threads: one call at a time on one object; any thread may make it.
class OPTIM_OFFLOAD_EXPORT CPUOffloadOptimizer : public torch::optim::Optimizer {
 public:
  /// Takes over `base` with its groups and whatever state it has; state is moved to host memory.
  ///
  /// `named_parameters` gives names to the tensors in the base's groups (shape of the
  /// name: `model.layers.3.mlp.weight`), which decide the chunks. Tensors of the groups that have
  /// no name go to the misc chunk; named tensors outside of all groups are ignored.
  ///
  /// Throws `c10::Error` where options make no sense (`stream` without `chunked`, too small sizes,
  /// a bad pattern), a tensor stands twice in the groups, or the base cannot be stepped in pieces
  /// (LBFGS) and `chunked` is set.
  CPUOffloadOptimizer(std::unique_ptr<torch::optim::Optimizer> base,
                      const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
                      OffloadOptions options = {});
  ~CPUOffloadOptimizer() override;

  CPUOffloadOptimizer(const CPUOffloadOptimizer&) = delete;
  CPUOffloadOptimizer(CPUOffloadOptimizer&&) = delete;
  CPUOffloadOptimizer& operator=(const CPUOffloadOptimizer&) = delete;
  CPUOffloadOptimizer& operator=(CPUOffloadOptimizer&&) = delete;

  /// Steps the base on every parameter, in the way that the options say, and returns the loss.
  ///
  /// All at once, the base gets the closure itself. In chunked modes the closure is called once,
  /// first, with grad mode on, and the base gets its loss.
  ///
  /// On a throw (closure, base, out of memory) groups, options and state are back in place and no
  /// copy is in flight; parameters whose piece was already stepped have moved on, and the message
  /// says which (of a `c10::Error`; other exceptions pass as they are).
  ///
  /// The first `verify` steps are compared with the plain optimizer's; a difference throws after
  /// the step is done. In these the closure is called once, first, in all modes.
  torch::Tensor step(LossClosure closure = nullptr) override;

  /// As `Optimizer::add_param_group`, but keeps options of types that LibTorch does not know.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Writes what the base's own save() writes, with state tensors on the CPU. Uses no GPU memory.
  void save(torch::serialize::OutputArchive& archive) const override;

  /// Reads an archive of this class or of the plain base. State goes straight to host memory.
  /// Where the archive does not fit, or cannot be read, nothing has changed. Where host memory for
  /// its state cannot be had, options and state are the archive's, and the next call tries again.
  void load(torch::serialize::InputArchive& archive) override;

  /// Waits until no copy is in flight. step() does so itself before it returns.
  void synchronize() const;

  /// Gives the base back with its groups and state; state is moved to its parameters' devices.
  /// This object is empty afterwards: its groups and state are, and what it declares itself throws,
  /// but for the destructor.
  std::unique_ptr<torch::optim::Optimizer> release();

  /// The wrapped optimizer. Its groups and state are empty between calls; see the class comment.
  torch::optim::Optimizer& base_optimizer();
  const torch::optim::Optimizer& base_optimizer() const;  ///< The same.

  const OffloadOptions& options() const;  ///< As given at construction.

  /// Counts of the latest step and of the memory now held.
  OffloadStats stats() const;

 private:
  class OPTIM_OFFLOAD_HIDDEN Impl;
  OPTIM_OFFLOAD_HIDDEN Impl& impl() const;  // throws once the base was released
  std::unique_ptr<Impl> impl_;
};

}  // namespace optim_offload
