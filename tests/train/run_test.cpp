#include "train/run.h"

#include <csignal>

#include <torch/cuda.h>

#include "train/support.h"

namespace optim_offload::train {
namespace {

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "offload-train");
  std::vector<const char*> argv;
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_trainer(static_cast<int>(argv.size()), argv.data());
  auto out = ::testing::internal::GetCapturedStdout();
  return {code, std::move(out), ::testing::internal::GetCapturedStderr()};
}

std::vector<std::string> arguments(const TempDir& dir, const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {test_config().string()};
  for (const auto& item : test_overrides(dir, overrides)) {
    all.push_back("--set");
    all.push_back(item);
  }
  return all;
}

std::vector<double> losses(const std::filesystem::path& path) {
  std::vector<double> values;
  for (const auto& line : read_metrics(path, "step")) values.push_back(line["loss"]);
  return values;
}

TEST(OffloadTrain, TrainsReportsAndWritesMetrics) {
  const TempDir dir;
  const auto metrics = dir / "new" / "metrics.jsonl";
  const auto result = run(arguments(dir, {"trainer.metrics=" + metrics.string()}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "step 6/6  loss "));
  EXPECT_TRUE(contains(result.out, "held out: exact match "));
  EXPECT_TRUE(contains(result.out, " of 8 pieces), characters "));
  EXPECT_EQ(result.out.find('\r'), std::string::npos);  // no bar where no terminal is

  const auto steps = read_metrics(metrics, "step");
  ASSERT_EQ(steps.size(), 6u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i]["step"], i + 1);
    EXPECT_GT(steps[i]["loss"].get<double>(), 0);
    EXPECT_GT(steps[i]["grad_norm"].get<double>(), 0);
  }
  EXPECT_DOUBLE_EQ(steps[0]["lr"].get<double>(), 1.5e-3);
  EXPECT_DOUBLE_EQ(steps[1]["lr"].get<double>(), 3e-3);
  EXPECT_EQ(read_metrics(metrics, "speed").size(), 3u);
  EXPECT_EQ(read_metrics(metrics, "eval").size(), 1u);
  EXPECT_EQ(read_metrics(metrics, "end").size(), 1u);
}

TEST(OffloadTrain, TheSameSeedGivesTheSameLossesInEveryMode) {
  const TempDir dir;
  const auto run_mode = [&](const std::string& name, std::vector<std::string> overrides,
                            const std::string& device) {
    overrides.push_back("trainer.device=" + device);
    const auto metrics = dir / (name + device);
    overrides.push_back("trainer.metrics=" + metrics.string());
    const auto result = run(arguments(dir, overrides));
    EXPECT_EQ(result.code, 0) << result.err;
    return losses(metrics);
  };
  const std::string offload = "trainer.model.optim_cpu_offload=true";
  const std::string chunked = "trainer.model.optim_cpu_offload_chunked=true";
  const std::string stream = "trainer.model.optim_cpu_offload_stream=true";
  std::vector<std::string> devices = {"cpu"};
  if (torch::cuda::is_available()) devices.push_back("cuda");
  for (const auto& device : devices) {
    const auto plain = run_mode("plain", {}, device);
    ASSERT_EQ(plain.size(), 6u);
    EXPECT_EQ(run_mode("again", {}, device), plain);
    EXPECT_EQ(run_mode("all", {offload}, device), plain);
    EXPECT_EQ(run_mode("sequential", {offload, chunked}, device), plain);
    EXPECT_EQ(run_mode("streamed", {offload, chunked, stream}, device), plain);
    EXPECT_NE(run_mode("other", {"trainer.seed=8"}, device), plain);
  }
}

TEST(OffloadTrain, ResumesFromTheCommandLine) {
  const TempDir dir;
  const auto metrics = dir / "metrics.jsonl";
  const std::vector<std::string> overrides = {"trainer.metrics=" + metrics.string(),
                                              "trainer.ckpt.dir=" + (dir / "ckpt").string(),
                                              "trainer.ckpt.every=4"};
  ASSERT_EQ(run(arguments(dir, overrides)).code, 0);
  const auto whole = losses(metrics);
  auto again = arguments(dir, {"trainer.metrics=" + metrics.string()});
  again.push_back("--resume");
  again.push_back((dir / "ckpt" / "step-00000004").string());
  const auto result = run(again);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "resumed from"));
  auto expected = whole;  // the file goes on after the first run's lines
  expected.insert(expected.end(), whole.begin() + 4, whole.end());
  EXPECT_EQ(losses(metrics), expected);
}

TEST(OffloadTrain, ExitCodesAndErrorsWithoutATrace) {
  const TempDir dir;
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"--nonsense"}).code, 2);
  EXPECT_EQ(run({(dir / "none.toml").string()}).code, 2);

  const auto bad = run(arguments(dir, {"trainer.steps=0"}));
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(contains(bad.err, "offload-train: error: [optim_offload] --set: trainer.steps = 0"));
  EXPECT_EQ(bad.err.find("Exception raised from"), std::string::npos) << bad.err;
  EXPECT_EQ(bad.err.find("frame #"), std::string::npos) << bad.err;

  auto missing = arguments(dir, {});
  missing.insert(missing.end(), {"--resume", (dir / "nowhere").string()});
  const auto failed = run(missing);
  EXPECT_EQ(failed.code, 1);
  EXPECT_TRUE(contains(failed.err, "there is no checkpoint at"));
  EXPECT_EQ(failed.err.find("frame #"), std::string::npos) << failed.err;
}

TEST(OffloadTrain, ALossThatIsNotFiniteEndsTheRun) {
  const TempDir dir;
  const auto result = run(arguments(dir, {"trainer.model.init_std=1e38"}));
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(contains(result.err, "the loss of step"));
}

}  // namespace
}  // namespace optim_offload::train
