// For scripts/mutation: OPTIM_OFFLOAD_WITHOUT_WAIT=NAME leaves that wait out of every simulated
// device of this run; "list" prints the names instead of running tests.
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace optim_offload::testing {
namespace {

using transfer::kWaitPoints;

void list_waits(std::ostream& out) {
  for (const auto& wait : kWaitPoints) out << wait.name << "\n";
}

class WithoutWait : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* variable = std::getenv("OPTIM_OFFLOAD_WITHOUT_WAIT");
    if (variable == nullptr) return;
    const std::string name = variable;
    if (name == "list") {
      list_waits(std::cout);
      std::exit(0);
    }
    for (const auto& wait : kWaitPoints) {
      if (name != wait.name) continue;
      std::cout << "Without the wait " << name << "." << std::endl;
      leave_out_wait(wait.point);
      return;
    }
    std::cerr << "OPTIM_OFFLOAD_WITHOUT_WAIT=" << name << " is none of\n";
    list_waits(std::cerr);
    std::exit(2);
  }
};

[[maybe_unused]] const auto* const registered =
    ::testing::AddGlobalTestEnvironment(new WithoutWait);

}  // namespace
}  // namespace optim_offload::testing
