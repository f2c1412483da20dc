#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include "train/checkpoint.h"
#include "train/checkpoint_store.h"
#include "train/config.h"
#include "train/data/piece_sampler.h"
#include "train/data/reverse_task.h"
#include "train/data/text_corpus.h"
#include "train/determinism.h"
#include "train/evaluate.h"
#include "train/metrics.h"
#include "train/model/transformer.h"
#include "train/progress.h"
#include "train/schedule.h"
#include "train/step_log.h"
#include "train/stop_signal.h"

namespace optim_offload::train {

/// How a run ended.
struct TrainOutcome {
  int64_t step = 0;                  ///< Steps finished, those before a resume included.
  bool stopped = false;              ///< By a signal, before the last step.
  std::optional<Accuracy> accuracy;  ///< Of the held-out pieces; not after a signal.
};

/// One run of the task *reverse text*: model, data, optimizer and all that goes with them.
class Trainer {
 public:
  /// Builds everything and, with `resume`, puts the checkpoint there in place. What the run prints
  /// goes to `out`; `terminal` chooses a bar instead of lines.
  Trainer(TrainConfig config, std::ostream& out, bool terminal,
          const std::optional<std::filesystem::path>& resume = {});

  /// Trains to the last step, or to the step in which `stop` has a signal; then saves (where a
  /// checkpoint directory is set) and measures the accuracies.
  TrainOutcome run(const StopSignal& stop);

  const CausalLM& model() const { return *model_; }
  const torch::optim::Optimizer& optimizer() const { return *optimizer_; }
  const TrainPosition& position() const { return position_; }

  /// Where checkpoints go; nullptr where no directory is set.
  CheckpointStore* store() { return store_.get(); }

 private:
  void resume_from(const std::filesystem::path& path);
  void open_store(const std::optional<std::filesystem::path>& resume);
  std::vector<Batch> next_batches();
  void train_step();
  void save();
  Accuracy evaluate();
  void finish(const TrainOutcome& outcome);
  std::string headline() const;

  TrainConfig config_;
  NumericsGuard numerics_;
  torch::Device device_;
  TextCorpus corpus_;
  PieceSampler sampler_;
  std::vector<std::string> held_out_;
  std::unique_ptr<CausalLM> model_;
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  LrSchedule schedule_;
  nlohmann::json fingerprint_;
  TrainPosition position_;
  std::unique_ptr<CheckpointStore> store_;
  int64_t saved_step_ = -1;
  MetricsFile metrics_;
  Progress progress_;
  StepLog log_;
};

}  // namespace optim_offload::train
