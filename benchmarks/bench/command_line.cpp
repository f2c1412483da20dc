#include <filesystem>
#include <iostream>

#include <c10/util/Exception.h>
#include <CLI/CLI.hpp>

#include "bench/options.h"

namespace optim_offload::bench {

namespace {

// As the user types it, before it is given a meaning.
struct Words {
  std::vector<std::string> models = {"small"};
  std::vector<std::string> modes = {"resident", "all-at-once", "sequential", "streamed"};
  std::vector<std::string> optimizers = {"AdamW"};
  std::string dtype = "fp32";
  std::string pin = "preferred";
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 32000;
};

void add_what(CLI::App& app, Words& words) {
  auto* models = app.add_option("--models", words.models,
                                "small, medium, large, embedding, tensors; comma-separated")
                     ->delimiter(',')
                     ->capture_default_str();
  auto* layers = app.add_option("--layers", words.layers, "a decoder of so many layers");
  auto* hidden = app.add_option("--hidden", words.hidden, "its hidden size");
  app.add_option("--vocab", words.vocab, "its vocabulary")->needs(layers)->capture_default_str();
  layers->needs(hidden)->excludes(models);
  hidden->needs(layers);
  app.add_option("--modes", words.modes, "which ways of stepping; comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--optimizers", words.optimizers, "AdamW, FusedAdamW, SGD, Muon; comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--dtype", words.dtype, "of weights, gradients and state: fp32 or bf16")
      ->capture_default_str();
}

void add_how(CLI::App& app, Words& words, BenchOptions& options) {
  app.add_option("--steps", options.steps, "timed steps of each mode")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "untimed steps after the first")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--soak", options.soak, "further steps over which memory must not grow")
      ->check(CLI::Range(0, 100000000));
  app.add_flag("--save-check", options.save_check,
               "measure the GPU memory that save() takes (streamed)");
  app.add_option("--link-repeats", options.link_repeats, "how often the link is timed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--piece-mib", options.piece_mib, "state in one piece, MiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--slots", options.slots, "device buffers of piece size")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--pin", words.pin, "off, preferred or required")->capture_default_str();
  app.add_flag("--simulate", options.simulate,
               "no GPU: the simulated device, for tests; its times mean nothing");
  app.add_option("--json", options.json, "write the results to this file");
  app.add_option("--pictures", options.pictures,
                 "write bars and the timeline of a streamed step to this folder");
  app.add_option("--timeline-model", options.timeline_model,
                 "model of that timeline; the first streamed one if not given");
}

bool in_results(const std::string& path) {
  return !path.empty() && std::filesystem::weakly_canonical(std::filesystem::absolute(path))
                                  .string()
                                  .find("benchmarks/results") != std::string::npos;
}

void give_meaning(const Words& words, BenchOptions& options) {
  if (words.layers != 0) {
    options.models = {decoder_spec("custom", words.layers, words.hidden, words.vocab)};
  } else {
    for (const auto& name : words.models) options.models.push_back(named_spec(name));
  }
  for (const auto& name : words.modes) options.modes.push_back(parse_mode(name));
  for (const auto& name : words.optimizers) options.optimizers.push_back(parse_optimizer(name));
  options.dtype = parse_dtype(words.dtype);
  options.pin = parse_pin(words.pin);
  TORCH_CHECK(!(options.simulate && (in_results(options.json) || in_results(options.pictures))),
              "[optim_offload] simulated figures do not belong into benchmarks/results; write them "
              "elsewhere or run on a CUDA machine");
}

}  // namespace

std::optional<BenchOptions> parse_command_line(int argc, char** argv, int& exit_code) {
  CLI::App app(
      "Measures the steps of CPUOffloadOptimizer against the link's limit, after checking that "
      "their results have the plain optimizer's bits.");
  Words words;
  BenchOptions options;
  add_what(app, words);
  add_how(app, words, options);
  try {
    app.parse(argc, argv);
    give_meaning(words, options);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    app.exit(error);
    exit_code = help ? 0 : 2;
    return std::nullopt;
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << "\n";
    exit_code = 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace optim_offload::bench
