#include "train/trainer.h"

#include <cstdio>

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include "optim_offload/cpu_offload_optimizer.h"
#include "train/fingerprint.h"
#include "train/gradients.h"
#include "train/loss.h"
#include "train/report.h"

namespace optim_offload::train {
namespace {

// Streams of random numbers that must differ: pieces to train on, and pieces held out.
constexpr uint64_t kHeldOutStream = 0x6865'6C64'206F'7574u;

std::unique_ptr<CausalLM> make_model(const TrainConfig& config, torch::Device device) {
  at::manual_seed(config.seed);
  const auto dtype = config.dtype == "bfloat16" ? torch::kBFloat16 : torch::kFloat32;
  return std::make_unique<CausalLM>(config.model,
                                    torch::TensorOptions().dtype(dtype).device(device));
}

}  // namespace

Trainer::Trainer(TrainConfig config, std::ostream& out, bool terminal,
                 const std::optional<std::filesystem::path>& resume)
    : config_(std::move(config)),
      numerics_(config_.deterministic, config_.tf32, config_.threads),
      device_(resolve_device(config_.device)),
      corpus_(
          TextCorpus::load(config_.data.files, config_.data.block_bytes, config_.data.held_out)),
      sampler_(corpus_, corpus_.training(), config_.data.lengths, config_.seed),
      held_out_(held_out_pieces(corpus_, config_.data.lengths, config_.data.held_out_pieces,
                                config_.seed ^ kHeldOutStream)),
      model_(make_model(config_, device_)),
      parameters_(unique_parameters(*model_)),
      optimizer_(make_optimizer(config_.optimizer, model_->named_parameters())),
      schedule_(*optimizer_, config_.schedule),
      fingerprint_({{"shape", shape_fingerprint(config_)},
                    {"course", course_fingerprint(config_, corpus_.text())}}),
      progress_(out, terminal, config_.schedule.steps),
      log_(metrics_, progress_, device_) {
  progress_.line(headline());
  if (resume.has_value()) resume_from(*resume);
  open_store(resume);
  // Last, so that a run that was refused has not emptied an earlier one's file.
  if (!config_.metrics.empty()) metrics_ = MetricsFile(config_.metrics, resume.has_value());
  if (resume.has_value()) metrics_.write({{"event", "resume"}, {"step", position_.step}});
}

std::string Trainer::headline() const {
  return describe_run(config_, *model_, *optimizer_, corpus_);
}

void Trainer::resume_from(const std::filesystem::path& path) {
  const auto checkpoint = resolve_checkpoint(path);
  check_whole(checkpoint, Depth::Bytes);
  const auto saved = read_fingerprint(checkpoint);
  const auto part = [&](const char* key) {
    return saved.is_object() ? saved.value(key, nlohmann::json::object())
                             : nlohmann::json::object();
  };
  std::string shape;
  for (const auto& difference : differences(part("shape"), fingerprint_["shape"])) {
    shape += (shape.empty() ? "" : "; ") + difference;
  }
  TORCH_CHECK(shape.empty(), "[optim_offload] the checkpoint ", checkpoint.string(),
              " is of another model or optimizer (", shape,
              "); resume with the config that it was made with");
  for (const auto& difference : differences(part("course"), fingerprint_["course"])) {
    progress_.line("warning: the run will not go on as it would have: " + difference);
  }
  position_ = read_checkpoint(checkpoint, *model_, *optimizer_);
  saved_step_ = position_.step;
  progress_.line("resumed from " + checkpoint.string() + " after step " +
                 std::to_string(position_.step));
}

void Trainer::open_store(const std::optional<std::filesystem::path>& resume) {
  const auto& ckpt = config_.ckpt;
  if (ckpt.dir.empty()) return;
  store_ = std::make_unique<CheckpointStore>(ckpt.dir, ckpt.keep);
  if (store_->names().empty() || ckpt.overwrite) return;
  // New checkpoints push the oldest out; a forgotten --resume must not cost an earlier run its own.
  namespace fs = std::filesystem;
  const bool same_run =
      resume.has_value() &&
      fs::canonical(resolve_checkpoint(*resume)).parent_path() == fs::canonical(ckpt.dir);
  TORCH_CHECK(same_run, "[optim_offload] ", ckpt.dir.string(), " already has ",
              store_->names().size(), " checkpoints of another run (newest ",
              store_->names().back(), "); give --resume ", ckpt.dir.string(),
              ", another trainer.ckpt.dir, or trainer.ckpt.overwrite = true");
}

std::vector<Batch> Trainer::next_batches() {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < config_.grad_accum; ++i) {
    std::vector<std::string> pieces;
    for (int64_t k = 0; k < config_.batch_size; ++k) {
      pieces.push_back(sampler_.piece(position_.pieces++));
    }
    batches.push_back(make_reverse_batch(pieces));
  }
  return batches;
}

void Trainer::train_step() {
  const auto batches = next_batches();
  int64_t tokens = 0;
  for (const auto& batch : batches) tokens += batch.token_count;

  auto loss = accumulate_gradients(*model_, batches);
  auto norm = clip_gradients(parameters_, config_.grad_clip);
  schedule_.apply(position_.step);
  optimizer_->step();
  optimizer_->zero_grad();

  position_.step += 1;
  position_.tokens += tokens;
  log_.add(position_.step, std::move(loss), std::move(norm), schedule_.lr(), tokens);
}

TrainOutcome Trainer::run(const StopSignal& stop) {
  const int64_t steps = config_.schedule.steps;
  const auto due = [&](int64_t every) { return every > 0 && position_.step % every == 0; };
  log_.start();
  while (position_.step < steps && stop.received() == 0) {
    train_step();
    progress_.step(position_.step);
    if (due(config_.log_every)) log_.flush();
    if (due(config_.ckpt.every)) save();
    if (due(config_.eval_every) && position_.step < steps) evaluate();
  }
  save();

  TrainOutcome outcome{.step = position_.step, .stopped = position_.step < steps, .accuracy = {}};
  if (outcome.stopped) {
    progress_.line(std::string("stopped by ") + stop.name() + " after step " +
                   std::to_string(position_.step) +
                   (store_ != nullptr ? "; go on with --resume " + config_.ckpt.dir.string()
                                      : "; nothing saved (trainer.ckpt.dir is not set)"));
    metrics_.write({{"event", "stop"}, {"step", position_.step}, {"signal", stop.name()}});
  } else {
    outcome.accuracy = evaluate();
    finish(outcome);
  }
  return outcome;
}

void Trainer::save() {
  log_.flush();
  if (store_ != nullptr && saved_step_ != position_.step) {
    store_->save(position_.step, [&](const std::filesystem::path& directory) {
      write_checkpoint(directory, *model_, *optimizer_, position_, fingerprint_);
    });
    saved_step_ = position_.step;
  }
  log_.start();
}

Accuracy Trainer::evaluate() {
  log_.flush();
  const auto accuracy = evaluate_reverse(*model_, held_out_, config_.data.eval_batch_size);
  progress_.line("held out: " + describe_accuracy(accuracy));
  metrics_.write({{"event", "eval"},
                  {"step", position_.step},
                  {"pieces", accuracy.pieces},
                  {"exact_match", accuracy.exact_match()},
                  {"character_accuracy", accuracy.character()}});
  log_.start();
  return accuracy;
}

void Trainer::finish(const TrainOutcome& outcome) {
  for (size_t i = 0; i < held_out_.size() && i < 3; ++i) {
    progress_.line(describe_example(*model_, held_out_[i]));
  }
  nlohmann::json line = {{"event", "end"}, {"step", outcome.step}, {"tokens", position_.tokens}};
  if (const auto* offload = dynamic_cast<const CPUOffloadOptimizer*>(optimizer_.get())) {
    const auto stats = offload->stats();
    progress_.line(describe_stats(stats));
    line["offload"] = stats_to_json(stats);
  }
  metrics_.write(line);
}

}  // namespace optim_offload::train
