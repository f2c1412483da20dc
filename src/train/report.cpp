#include "train/report.h"

#include <iomanip>
#include <sstream>

#include "optim_offload/cpu_offload_optimizer.h"
#include "train/data/reverse_task.h"

namespace optim_offload::train {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string describe_mode(const torch::optim::Optimizer& optimizer) {
  const auto* offload = dynamic_cast<const CPUOffloadOptimizer*>(&optimizer);
  if (offload == nullptr) return "not offloaded";
  const auto& options = offload->options();
  if (!options.chunked()) return "offloaded, all at once";
  return options.stream() ? "offloaded, chunked, streamed" : "offloaded, chunked";
}

}  // namespace

std::string describe_run(const TrainConfig& config, const CausalLM& model,
                         const torch::optim::Optimizer& optimizer, const TextCorpus& corpus) {
  int64_t training = 0;
  for (const auto& span : corpus.training()) training += span.size();
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << static_cast<double>(model.parameter_count()) * 1e-6
      << " M parameters in " << config.dtype << " on " << model.device() << "; "
      << config.optimizer.type << ", state " << describe_mode(optimizer) << "; " << training
      << " bytes of text to train on, " << static_cast<int64_t>(corpus.text().size()) - training
      << " held out";
  return out.str();
}

std::string describe_accuracy(const Accuracy& accuracy) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << "exact match " << 100 * accuracy.exact_match()
      << " % (" << accuracy.exact_pieces << " of " << accuracy.pieces << " pieces), characters "
      << std::setprecision(2) << 100 * accuracy.character() << " % (" << accuracy.right_bytes
      << " of " << accuracy.bytes << ")";
  return out.str();
}

std::string describe_example(const CausalLM& model, const std::string& piece) {
  const auto prompt = make_prompts({piece}).select(0, 0).slice(0, 1, -1);  // the text's bytes
  const auto written = decode_reverse(model, {piece}).select(0, 0);
  return "  \"" + tokens_to_text(prompt) + "\" -> \"" + tokens_to_text(written) + "\"";
}

std::string describe_stats(const OffloadStats& stats) {
  if (stats.state_bytes == 0 && stats.h2d_bytes == 0) {
    return "offload: the parameters are on the CPU, where their state rests too; nothing is copied";
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << "offload, last step: " << stats.pieces
      << " pieces in " << stats.chunks << " chunks, " << mib(stats.h2d_bytes) << " MiB up, "
      << mib(stats.d2h_bytes) << " MiB down in " << 1000 * stats.seconds << " ms ("
      << stats.gigabytes_per_second() << " GB/s); state " << mib(stats.state_bytes)
      << " MiB on the host, " << mib(stats.pinned_bytes) << " MiB pinned; at most "
      << mib(stats.peak_slot_bytes) << " MiB of it on the device";
  return out.str();
}

nlohmann::json stats_to_json(const OffloadStats& stats) {
  return {{"steps", stats.steps},
          {"chunks", stats.chunks},
          {"pieces", stats.pieces},
          {"tiles", stats.tiles},
          {"h2d_bytes", stats.h2d_bytes},
          {"d2h_bytes", stats.d2h_bytes},
          {"seconds", stats.seconds},
          {"host_seconds", stats.host_seconds},
          {"gigabytes_per_second", stats.gigabytes_per_second()},
          {"peak_slot_bytes", stats.peak_slot_bytes},
          {"largest_piece_bytes", stats.largest_piece_bytes},
          {"oversize_piece", stats.oversize_piece},
          {"state_bytes", stats.state_bytes},
          {"pinned_bytes", stats.pinned_bytes},
          {"pageable_bytes", stats.pageable_bytes}};
}

}  // namespace optim_offload::train
