#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/optim/adamw.h>
#include <torch/types.h>

#include "fuzz/byte_edits.h"
#include "fuzz/scratch_folder.h"
#include "fuzz/targets.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "train/checkpoint.h"
#include "train/checkpoint_store.h"
#include "train/fingerprint.h"

namespace optim_offload::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {"state.json", "manifest.json", "model.pt", "optimizer.pt",
                               "random.pt"};

struct Run {
  std::unique_ptr<train::CausalLM> model;
  std::unique_ptr<CPUOffloadOptimizer> optimizer;

  Run() {
    torch::manual_seed(1);
    const train::ModelConfig config{.vocab_size = 5,
                                    .dim = 2,
                                    .layers = 1,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = 2,
                                    .ffn_dim = 2,
                                    .max_positions = 4};
    model = std::make_unique<train::CausalLM>(config, torch::TensorOptions());
    optimizer = std::make_unique<CPUOffloadOptimizer>(
        std::make_unique<torch::optim::AdamW>(model->parameters()), model->named_parameters());
  }

  void step() {
    model->forward(torch::zeros({1, 2}, torch::kLong)).sum().backward();
    optimizer->step();
    optimizer->zero_grad();
  }
};

/// A whole checkpoint, made once; each input works on a copy.
const fs::path& whole_checkpoint() {
  static const ScratchFolder folder;
  static const fs::path path = [] {
    Run run;
    run.step();
    train::CheckpointStore store(folder.path(), 1);
    return store.save(1, [&](const fs::path& directory) {
      train::write_checkpoint(directory, *run.model, *run.optimizer,
                              {.step = 1, .pieces = 2, .tokens = 3}, {{"shape", {{"dim", 2}}}});
    });
  }();
  return path;
}

}  // namespace

void checkpoint(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const std::string name = kFiles[first % 128 % kFiles.size()];
  input.remove_prefix(1);

  static const ScratchFolder folder;
  const fs::path copy = folder.path() / "step-00000001";
  fs::remove_all(copy);
  fs::copy(whole_checkpoint(), copy);
  const std::string content =
      first < 128 ? std::string(input) : with_byte_edits(train::read_file(copy / name), input);
  train::write_file(copy / name, content);
  // As if it had been written like that, so that the reading is reached.
  if (name != "manifest.json") train::write_manifest(copy);

  Run run;
  const bool read = accepts([&] {
    const auto found = train::resolve_checkpoint(folder.path());
    const auto fingerprint = train::read_fingerprint(found);
    train::differences(fingerprint, {{"shape", {{"dim", 2}}}});
    train::read_checkpoint(found, *run.model, *run.optimizer);
  });
  // The optimizer is usable whether its file was read or refused.
  if (read) {
    accepts([&] { run.step(); });
  } else {
    run.step();
  }
}

}  // namespace optim_offload::fuzz
