// A program whose optimizer is destroyed after main() has returned, or by exit(), or not at all in
// a forked child. Prints "destroyed" when it is gone.
//
// usage: optim_offload_exit_test {cpu|simulated|cuda} {return|exit|fork} {all_at_once|...}

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <torch/optim/adamw.h>
#include <torch/types.h>

#include "optim_offload/cpu_offload_optimizer.h"
#include "transfer/simulated_device.h"

namespace {

/// Made before the optimizer, so gone after it.
struct Witness {
  bool speaks = true;
  ~Witness() {
    if (speaks) std::puts("destroyed");
  }
};

Witness witness;
std::optional<optim_offload::transfer::ScopedSimulatedDevice> device;
std::unique_ptr<optim_offload::CPUOffloadOptimizer> optimizer;

void step(const torch::Tensor& weight) {
  auto parameter = weight;
  parameter.mutable_grad() = torch::ones_like(weight);
  optimizer->step();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string kind = argv[1];
  const std::string end = argv[2];
  const std::string mode = argv[3];
  if (kind == "simulated") device.emplace();
  const auto where = kind == "cuda" ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  auto weight = torch::ones({300, 20}, where).set_requires_grad(true);

  torch::OrderedDict<std::string, torch::Tensor> names;
  names.insert("weight", weight);
  optimizer = std::make_unique<optim_offload::CPUOffloadOptimizer>(
      std::make_unique<torch::optim::AdamW>(std::vector<torch::Tensor>{weight}), names,
      optim_offload::OffloadOptions()
          .chunked(mode != "all_at_once")
          .stream(mode == "streamed")
          .piece_bytes(1024));
  step(weight);
  step(weight);

  if (end == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      witness.speaks = false;
      std::exit(0);  // destroys the optimizer, which is the parent's
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 3;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 4;
    step(weight);
  }
  if (end == "exit") std::exit(0);
  return 0;
}
