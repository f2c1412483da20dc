#include "train/checkpoint.h"

#include <csignal>
#include <sstream>
#include <stdexcept>

#include <torch/cuda.h>

#include "train/fingerprint.h"
#include "train/support.h"
#include "train/trainer.h"

namespace optim_offload::train {
namespace {

namespace fs = std::filesystem;

struct Mode {
  const char* name;
  std::vector<std::string> overrides;
};

const std::vector<Mode>& modes() {
  static const std::string key = "trainer.model.optim_cpu_offload";
  static const std::vector<Mode> all = {
      {"plain", {}},
      {"all_at_once", {key + "=true"}},
      {"sequential", {key + "=true", key + "_chunked=true"}},
      {"streamed", {key + "=true", key + "_chunked=true", key + "_stream=true"}}};
  return all;
}

/// Runs of configs/test.toml in one directory.
class Resume : public ::testing::Test {
 protected:
  std::vector<std::string> with(const Mode& mode, std::vector<std::string> more) const {
    more.insert(more.end(), mode.overrides.begin(), mode.overrides.end());
    more.push_back("trainer.device=" + device_);
    return more;
  }

  std::unique_ptr<Trainer> make(const Mode& mode, std::vector<std::string> more,
                                const std::optional<fs::path>& resume = {}) {
    return std::make_unique<Trainer>(small_config(dir_, with(mode, std::move(more))), out_, false,
                                     resume);
  }

  std::string metrics(const std::string& name) const {
    return "trainer.metrics=" + (dir_ / (name + ".jsonl")).string();
  }

  std::string ckpt(const std::string& name) const {
    return "trainer.ckpt.dir=" + (dir_ / name).string();
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> values;
    for (const auto& line : read_metrics(dir_ / (name + ".jsonl"), "step")) {
      values.push_back(line["loss"]);
    }
    return values;
  }

  /// A whole run without a break, in `mode`; its losses.
  std::vector<double> reference(const Mode& mode) {
    whole_ = make(mode, {metrics("whole")});
    const StopSignal stop;
    whole_->run(stop);
    return losses("whole");
  }

  /// Trains 6 steps in `mode` with a checkpoint each second one.
  void save_steps(const Mode& mode) {
    auto trainer = make(mode, {ckpt("ckpt"), "trainer.ckpt.every=2", metrics("saved")});
    const StopSignal stop;
    trainer->run(stop);
  }

  void every_mode_to_every_mode() {
    const auto expected = reference(modes().front());
    ASSERT_EQ(expected.size(), 6u);
    for (const auto& from : modes()) {
      fs::remove_all(dir_ / "ckpt");
      save_steps(from);
      EXPECT_EQ(losses("saved"), expected) << from.name;
      for (const auto& to : modes()) {
        auto resumed = make(to, {metrics("resumed")}, dir_ / "ckpt" / "step-00000002");
        EXPECT_EQ(resumed->position().step, 2);
        const StopSignal stop;
        resumed->run(stop);
        const auto actual = losses("resumed");
        fs::remove(dir_ / "resumed.jsonl");
        EXPECT_EQ(actual, std::vector<double>(expected.begin() + 2, expected.end()))
            << from.name << " to " << to.name;
        expect_same_parameters(whole_->model(), resumed->model());
      }
    }
  }

  TempDir dir_;
  std::ostringstream out_;
  std::string device_ = "cpu";
  std::unique_ptr<Trainer> whole_;
};

TEST_F(Resume, GoesOnBitForBitFromEveryModeToEveryMode) { every_mode_to_every_mode(); }

TEST_F(Resume, GoesOnBitForBitFromEveryModeToEveryMode_CUDA) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  device_ = "cuda";
  every_mode_to_every_mode();
}

TEST_F(Resume, ASignalSavesAfterTheStepAndTheRunGoesOn) {
  const auto expected = reference(modes().front());
  {
    auto trainer = make(modes().front(), {ckpt("ckpt"), "trainer.ckpt.every=2", metrics("parts")});
    const StopSignal stop;
    int saves = 0;
    trainer->store()->on_stage = [&](CheckpointStore::Stage stage) {
      if (stage == CheckpointStore::Stage::Pruned && ++saves == 1) std::raise(SIGTERM);
    };
    const auto outcome = trainer->run(stop);
    EXPECT_TRUE(outcome.stopped);
    EXPECT_EQ(outcome.step, 2);
    EXPECT_FALSE(outcome.accuracy.has_value());
    EXPECT_TRUE(contains(out_.str(), "stopped by SIGTERM after step 2; go on with --resume"));
  }
  auto resumed = make(modes().front(), {ckpt("ckpt"), metrics("parts")}, dir_ / "ckpt");
  const StopSignal stop;
  const auto outcome = resumed->run(stop);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(losses("parts"), expected);
  expect_same_parameters(whole_->model(), resumed->model());
}

TEST_F(Resume, ACrashWhileSavingCostsOnlyTheStepsSinceTheOneBefore) {
  const auto expected = reference(modes().front());
  {
    auto trainer = make(modes().front(), {ckpt("ckpt"), "trainer.ckpt.every=2"});
    int synced = 0;
    // Leaves the disk as a kill between the second one's temporary directory and its rename would.
    trainer->store()->on_stage = [&](CheckpointStore::Stage stage) {
      if (stage == CheckpointStore::Stage::Synced && ++synced == 2) throw std::runtime_error("end");
    };
    const StopSignal stop;
    EXPECT_THROW(trainer->run(stop), std::runtime_error);
  }
  ASSERT_TRUE(fs::exists(dir_ / "ckpt" / ".tmp-step-00000004"));

  auto resumed = make(modes().front(), {ckpt("ckpt"), metrics("resumed")}, dir_ / "ckpt");
  EXPECT_EQ(resumed->position().step, 2);
  const StopSignal stop;
  resumed->run(stop);
  EXPECT_EQ(losses("resumed"), std::vector<double>(expected.begin() + 2, expected.end()));
  expect_same_parameters(whole_->model(), resumed->model());
}

// LibTorch's own writing would end the process.
TEST_F(Resume, AFullDiskIsAnError) {
  const auto trainer = make(modes().back(), {"trainer.steps=1", "trainer.warmup_steps=0"});
  for (const char* name : {"model.pt", "optimizer.pt", "random.pt"}) {
    const auto folder = dir_ / (std::string("full-") + name);
    fs::create_directory(folder);
    fs::create_symlink("/dev/full", folder / name);
    try {
      write_checkpoint(folder, trainer->model(), trainer->optimizer(), {}, {});
      FAIL() << name << " was written to a full disk";
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      EXPECT_NE(what.find("cannot write " + (folder / name).string() + " (No space left"),
                std::string::npos)
          << what;
    }
  }
}

TEST_F(Resume, PutsTheRandomGeneratorBack) {
  auto trainer = make(modes().front(), {ckpt("ckpt")});
  const StopSignal stop;
  trainer->run(stop);
  torch::manual_seed(77);
  torch::rand({5});
  write_checkpoint(dir_.path(), trainer->model(), trainer->optimizer(), {}, {});
  const auto expected = torch::rand({5});
  auto other = make(modes().front(), {"trainer.seed=8"});
  read_checkpoint(dir_.path(), const_cast<CausalLM&>(other->model()),
                  const_cast<torch::optim::Optimizer&>(other->optimizer()));
  EXPECT_TRUE(same_bits(torch::rand({5}), expected));
}

TEST_F(Resume, ABFloat16RunGoesOnToo) {
  const std::string half = "trainer.model.dtype=bfloat16";
  auto whole = make(modes().front(), {half, metrics("whole")});
  const StopSignal stop;
  whole->run(stop);
  make(modes().front(), {half, ckpt("ckpt"), "trainer.ckpt.every=2"})->run(stop);
  auto resumed = make(modes().front(), {half, metrics("resumed")}, dir_ / "ckpt/step-00000004");
  resumed->run(stop);
  const auto expected = losses("whole");
  EXPECT_EQ(losses("resumed"), std::vector<double>(expected.begin() + 4, expected.end()));
  expect_same_parameters(whole->model(), resumed->model());
}

TEST_F(Resume, RefusesAnotherModelAndWarnsOfAnotherCourse) {
  save_steps(modes().front());
  const auto refused = [&](const std::string& override_) {
    return error_of([&] { make(modes().front(), {override_}, dir_ / "ckpt"); });
  };
  EXPECT_TRUE(
      contains(refused("trainer.model.dim=64"), "(dim: 32 in the checkpoint, 64 in the config)"));
  EXPECT_TRUE(contains(refused("trainer.model.tied=true"), "tied: false in the checkpoint"));
  EXPECT_TRUE(contains(refused("trainer.model.dtype=bfloat16"), "dtype"));
  make(modes().front(), {"trainer.seed=9"}, dir_ / "ckpt/step-00000002");
  EXPECT_TRUE(contains(out_.str(), "warning: the run will not go on as it would have: seed: 7"));
}

TEST_F(Resume, ASecondRunDoesNotPushOutTheFirstOnesCheckpoints) {
  save_steps(modes().front());
  const auto text = error_of([&] { make(modes().front(), {ckpt("ckpt")}); });
  EXPECT_TRUE(contains(text, "already has 3 checkpoints of another run"));
  EXPECT_NO_THROW(make(modes().front(), {ckpt("ckpt"), "trainer.ckpt.overwrite=true"}));
  EXPECT_NO_THROW(make(modes().front(), {ckpt("ckpt")}, dir_ / "ckpt"));
}

TEST_F(Resume, AFingerprintOfAnotherFormIsAnotherModel) {
  save_steps(modes().front());
  const auto saved = dir_ / "ckpt" / "step-00000006";
  for (const std::string fingerprint :
       {"5", "[]", "{\"shape\": 5}", "{\"shape\": {}, \"course\": 1}"}) {
    write_text(saved / "state.json",
               "{\"position\": {\"step\": 6, \"pieces\": 1, \"tokens\": 1}, \"fingerprint\": " +
                   fingerprint + "}");
    write_manifest(saved);
    const auto text = error_of([&] { make(modes().front(), {}, saved); });
    EXPECT_TRUE(contains(text, "is of another model or optimizer (")) << fingerprint;
    EXPECT_TRUE(contains(text, "dim: null in the checkpoint")) << fingerprint;
  }
}

// LibTorch's reader takes the flipped bits of a tensor for its values.
TEST_F(Resume, AFlippedBitGivesAnError) {
  save_steps(modes().front());
  const auto saved = dir_ / "ckpt" / "step-00000006";
  for (const std::string name : {"model.pt", "optimizer.pt", "random.pt", "state.json"}) {
    const auto whole = read_file(saved / name);
    auto flipped = whole;
    flipped[flipped.size() / 2] ^= 1;
    write_text(saved / name, flipped);
    EXPECT_TRUE(contains(error_of([&] { make(modes().front(), {}, saved); }),
                         "its file " + name + " has other bytes than were written"));
    write_text(saved / name, whole);
  }
  EXPECT_NO_THROW(make(modes().front(), {}, saved));
}

// As if they had been written like that, past the manifest.
TEST_F(Resume, DamagedFilesGiveErrors) {
  save_steps(modes().front());
  const auto saved = dir_ / "ckpt" / "step-00000006";
  for (const std::string name : {"model.pt", "optimizer.pt", "random.pt", "state.json"}) {
    const auto copy = dir_ / "copy";
    fs::remove_all(copy);
    fs::copy(saved, copy);
    const auto size = fs::file_size(copy / name);
    std::fstream file(copy / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0);
    file << std::string(size, '#');
    file.close();
    write_manifest(copy);
    const auto text = error_of([&] { make(modes().front(), {}, copy); });
    EXPECT_TRUE(contains(text, name));
    EXPECT_TRUE(contains(text, "resume from another"));
  }
}

}  // namespace
}  // namespace optim_offload::train
