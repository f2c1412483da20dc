#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

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

constexpr const char* kManifest = "manifest.json";
constexpr std::array kFiles = {"state.json", "manifest.json", "model.pt", "optimizer.pt",
                               "random.pt"};

train::CausalLM& model() {
  static train::CausalLM made({.vocab_size = 5,
                               .dim = 2,
                               .layers = 1,
                               .heads = 1,
                               .kv_heads = 1,
                               .head_dim = 2,
                               .ffn_dim = 2,
                               .max_positions = 4},
                              torch::TensorOptions());
  return made;
}

/// The same for each input: making a model takes long, so there is one, whose weights are set back.
struct Run {
  std::unique_ptr<CPUOffloadOptimizer> optimizer;

  Run() {
    torch::manual_seed(1);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model().parameters()) {
      parameter.fill_(0.5);
      parameter.mutable_grad().reset();
    }
    optimizer = std::make_unique<CPUOffloadOptimizer>(
        std::make_unique<torch::optim::AdamW>(model().parameters()), model().named_parameters());
  }

  void step() {
    for (auto& parameter : model().parameters()) {
      parameter.mutable_grad() = torch::full_like(parameter, 0.25);
    }
    optimizer->step();
  }
};

/// A whole checkpoint, of which each input changes one file. The next one puts that back.
class Checkpoint {
 public:
  Checkpoint() {
    Run run;
    run.step();
    train::CheckpointStore store(folder_.path(), 1);
    path_ = store.save(1, [&](const fs::path& directory) {
      train::write_checkpoint(directory, model(), *run.optimizer,
                              {.step = 1, .pieces = 2, .tokens = 3}, {{"shape", {{"dim", 2}}}});
    });
    for (const std::string name : kFiles) whole_[name] = train::read_file(path_ / name);
  }

  const fs::path& folder() const { return folder_.path(); }
  const std::string& whole(const std::string& name) const { return whole_.at(name); }

  /// Whether the manifest still vouches for the files.
  bool change(const std::string& name, const std::string& content) {
    if (!changed_.empty()) {
      train::write_file(path_ / changed_, whole(changed_));
      train::write_file(path_ / kManifest, whole(kManifest));
    }
    train::write_file(path_ / name, content);
    changed_ = name;
    const bool archive = name.ends_with(".pt");
    // As if it had been written like that, so that the reading is reached. But not of an archive:
    // LibTorch's reader is not safe against damage, which is what checksums are for.
    if (name != kManifest && !archive) train::write_manifest(path_);
    return !archive || content == whole(name);
  }

 private:
  ScratchFolder folder_;
  fs::path path_;
  std::map<std::string, std::string> whole_;
  std::string changed_;
};

}  // namespace

void checkpoint(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const std::string name = kFiles[first % 128 % kFiles.size()];
  input.remove_prefix(1);

  static Checkpoint files;
  const bool vouched = files.change(
      name, first < 128 ? std::string(input) : with_byte_edits(files.whole(name), input));

  Run run;
  const bool read = accepts([&] {
    const auto found = train::resolve_checkpoint(files.folder());
    train::check_whole(found, train::Depth::Bytes);
    promise(vouched, "a damaged archive passes the comparison of checksums");
    const auto fingerprint = train::read_fingerprint(found);
    train::differences(fingerprint, {{"shape", {{"dim", 2}}}});
    train::read_checkpoint(found, model(), *run.optimizer);
  });
  // The optimizer is usable whether its file was read or refused.
  if (read) {
    accepts([&] { run.step(); });
  } else {
    run.step();
  }
}

}  // namespace optim_offload::fuzz
