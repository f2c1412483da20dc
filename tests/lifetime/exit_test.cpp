// The optimizer's end when everything else ends too: after main(), in exit(), in a forked child.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include <gtest/gtest.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Runs the program with these arguments, at most for half a minute; gives status and output.
std::pair<int, std::string> run_program(const std::string& arguments) {
  // A child that has not its parent's threads cannot look for leaks, and says so.
  const std::string command =
      "ASAN_OPTIONS=detect_leaks=0 timeout 30 " EXIT_TEST_PATH " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "no pipe"};
  std::string output;
  std::array<char, 256> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  return {pclose(pipe), output};
}

void ends_well(const std::string& kind, const std::vector<std::string>& ends) {
  for (const auto& end : ends) {
    for (const std::string mode : {"all_at_once", "sequential", "streamed"}) {
      const auto arguments = kind + " " + end + " " + mode;
      const auto [status, output] = run_program(arguments);
      EXPECT_EQ(status, 0) << arguments << "\n" << output;
      EXPECT_EQ(output, "destroyed\n") << arguments;
    }
  }
}

TEST(Exit, DestroyedAfterMain_Cpu) { ends_well("cpu", {"return", "exit"}); }
TEST(Exit, DestroyedAfterMain_Simulated) { ends_well("simulated", {"return", "exit"}); }
TEST(Exit, DestroyedAfterMain_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  ends_well("cuda", {"return", "exit"});
}

TEST(Exit, AChildThatExits_Cpu) { ends_well("cpu", {"fork"}); }
TEST(Exit, AChildThatExits_Simulated) { ends_well("simulated", {"fork"}); }
TEST(Exit, AChildThatExits_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  ends_well("cuda", {"fork"});
}

// A child that destroys what it inherited, between the parent's steps.
OFFLOAD_TEST(Fork, AChildDestroysAndTheParentGoesOn) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(2);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);
      twins.wrapped.reset();
      _exit(0);
    }
    twins.steps(2);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

}  // namespace
}  // namespace optim_offload::testing
