#include "bench/options.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <c10/util/Exception.h>

namespace optim_offload::bench {
namespace {

std::optional<BenchOptions> parse(std::vector<std::string> words, int* exit_code = nullptr) {
  words.insert(words.begin(), "offload-bench");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  int code = 0;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  auto options = parse_command_line(static_cast<int>(argv.size()), argv.data(), code);
  testing::internal::GetCapturedStderr();
  testing::internal::GetCapturedStdout();
  if (exit_code != nullptr) *exit_code = code;
  return options;
}

TEST(CommandLine, ReadsListsAndNumbers) {
  const auto options = parse({"--models", "small,tensors", "--modes", "streamed", "--optimizers",
                              "SGD,AdamW", "--dtype", "bf16", "--slots", "4", "--piece-mib", "32"});
  ASSERT_TRUE(options);
  ASSERT_EQ(options->models.size(), 2u);
  EXPECT_EQ(options->models[1].name, "tensors");
  EXPECT_EQ(options->modes, std::vector<Mode>{Mode::Streamed});
  EXPECT_EQ(options->optimizers,
            (std::vector<OptimizerKind>{OptimizerKind::SGD, OptimizerKind::AdamW}));
  EXPECT_EQ(options->dtype, c10::ScalarType::BFloat16);
  const auto offload = options->offload(Mode::Streamed);
  EXPECT_TRUE(offload.chunked() && offload.stream());
  EXPECT_EQ(offload.slots(), 4);
  EXPECT_EQ(offload.piece_bytes(), int64_t{32} << 20);
}

TEST(CommandLine, TakesAModelByItsSizes) {
  const auto options = parse({"--layers", "2", "--hidden", "64", "--vocab", "100"});
  ASSERT_TRUE(options);
  ASSERT_EQ(options->models.size(), 1u);
  EXPECT_EQ(options->models[0].numel(), 2 * (16 * 64 * 64 + 2 * 64) + 2 * 100 * 64 + 64);
}

TEST(CommandLine, EachModeHasItsFlags) {
  const BenchOptions options;
  EXPECT_FALSE(options.offload(Mode::AllAtOnce).chunked());
  EXPECT_TRUE(options.offload(Mode::Sequential).chunked());
  EXPECT_FALSE(options.offload(Mode::Sequential).stream());
  EXPECT_THROW(options.offload(Mode::Resident), c10::Error);
}

TEST(CommandLine, RefusesWhatMakesNoSense) {
  const std::vector<std::vector<std::string>> lines = {
      {"--models", "huge"},
      {"--modes", "fast"},
      {"--optimizers", "Lion"},
      {"--dtype", "fp8"},
      {"--pin", "maybe"},
      {"--steps", "0"},
      {"--slots", "1"},
      {"--layers", "2"},
      {"--models", "small", "--layers", "2", "--hidden", "8"},
      {"--unknown"},
      {"--simulate", "--json", "benchmarks/results/h200.json"},
      {"--simulate", "--pictures", "benchmarks/results"}};
  for (const auto& line : lines) {
    int code = 0;
    EXPECT_FALSE(parse(line, &code)) << line.back();
    EXPECT_EQ(code, 2) << line.back();
  }
}

TEST(CommandLine, HelpIsNoError) {
  int code = -1;
  EXPECT_FALSE(parse({"--help"}, &code));
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace optim_offload::bench
