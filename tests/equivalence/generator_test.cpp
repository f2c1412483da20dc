// Random models, optimizers, options and schedules against the plain optimizer, bit by bit.
//
// OPTIM_OFFLOAD_SEED (default 20250101) is the first case's seed, each further case has the next
// number; OPTIM_OFFLOAD_CASES says how many. A failure prints the seed that replays it alone.
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "equivalence/random_case.h"
#include "fault.h"

namespace optim_offload::testing {
namespace {

int64_t number_from_environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::atoll(text);
}

void run_cases(DeviceKind kind, int64_t default_cases) {
  const auto first = static_cast<uint64_t>(number_from_environment("OPTIM_OFFLOAD_SEED", 20250101));
  const auto count = number_from_environment("OPTIM_OFFLOAD_CASES", default_cases);
  std::cout << "seeds " << first << " to " << first + count - 1 << std::endl;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    // Draws of their own, so that a case is the same on every device.
    Random device_random(~seed);
    const std::chrono::microseconds delay(device_random.integer(0, 150));
    const auto devices = static_cast<int>(device_random.pick<int64_t>({1, 1, 2, 3}));
    TestDevice device(kind, delay, devices);
    const FaultyLinks links;
    std::ostringstream log;
    try {
      Case(seed, device, log).run();
      device.expect_order();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "thrown: " << error.what();
    }
    if (::testing::Test::HasFailure()) {
      FAIL() << "replay with OPTIM_OFFLOAD_SEED=" << seed << " OPTIM_OFFLOAD_CASES=1\n"
             << "  simulated devices: " << devices << "\n"
             << log.str();
    }
  }
}

TEST(Equivalence, RandomCases_Cpu) { run_cases(DeviceKind::Cpu, 100); }

TEST(Equivalence, RandomCases_Simulated) { run_cases(DeviceKind::Simulated, 200); }

TEST(Equivalence, RandomCases_CUDA) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  run_cases(DeviceKind::Cuda, 200);
}

}  // namespace
}  // namespace optim_offload::testing
