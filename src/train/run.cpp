#include "train/run.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <CLI/CLI.hpp>

#include "error.h"
#include "train/config.h"
#include "train/stop_signal.h"
#include "train/trainer.h"

namespace optim_offload::train {
namespace {

constexpr int kFailure = 1;
constexpr int kBadConfig = 2;

/// The exception in flight, as one would say it to a user.
std::string error_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return message_of(error);
  } catch (...) {
    return "an unknown error";
  }
}

int fail(int code) {
  std::cerr << "offload-train: error: " << error_text() << std::endl;
  return code;
}

int train(TrainConfig config, const std::optional<std::filesystem::path>& resume) {
  const StopSignal stop;
  Trainer trainer(std::move(config), std::cout, isatty(STDOUT_FILENO) != 0, resume);
  trainer.run(stop);
  return 0;
}

}  // namespace

int run_trainer(int argc, const char* const* argv) {
  CLI::App app{
      "Trains a small language model to write text backwards, with the optimizer's state "
      "in host memory where the config says so."};
  std::string path;
  std::vector<std::string> overrides;
  std::string resume;
  app.add_option("config", path, "TOML file with the run's settings")->required();
  app.add_option("--set", overrides, "Override a setting: trainer.steps=100 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--resume", resume, "Checkpoint to go on from, or a directory of checkpoints")
      ->type_name("PATH");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfig;
  }

  TrainConfig config;
  try {
    config = load_train_config(path, overrides);
  } catch (...) {
    return fail(kBadConfig);
  }
  try {
    return train(std::move(config),
                 resume.empty() ? std::nullopt : std::optional<std::filesystem::path>(resume));
  } catch (...) {
    return fail(kFailure);
  }
}

}  // namespace optim_offload::train
