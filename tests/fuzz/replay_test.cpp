// The corpus of fuzzing, run once: what was found stays mended, with any compiler.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "fuzz/targets.h"

namespace optim_offload::fuzz {
namespace {

template <typename Target>
void replay(const std::string& name, Target&& target) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS "/" + name)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_NO_THROW(target(input));
    ++inputs;
  }
  EXPECT_GE(inputs, 10);
}

TEST(FuzzCorpus, Settings) { replay("settings", settings); }
TEST(FuzzCorpus, Archive) { replay("archive", archive); }
TEST(FuzzCorpus, Checkpoint) { replay("checkpoint", checkpoint); }

}  // namespace
}  // namespace optim_offload::fuzz
