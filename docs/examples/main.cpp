// Runs the examples. They are cut into pieces and copied on any machine: a simulated device stands
// in for the GPU.
#include <filesystem>
#include <iostream>
#include <string>

#include <torch/cuda.h>
#include <torch/types.h>

#include "examples.h"
#include "transfer/simulated_device.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: optim_offload_doc_examples FOLDER CONFIG.TOML ...\n";
    return 2;
  }
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder);
  torch::manual_seed(1);
  {
    const optim_offload::transfer::ScopedSimulatedDevice device;
    examples::readme();
    examples::options();
    for (int i = 2; i < argc; ++i) examples::from_toml(argv[i]);
    examples::loop();
    examples::closure();
    examples::parameter_groups();
    examples::fused();
    examples::muon();
    examples::statistics();
    examples::own_optimizer();
    examples::saving(folder);
    examples::releasing();
    examples::failed_load(folder);
    examples::failed_step();
  }
  if (torch::cuda::is_available()) examples::back_to_plain_on_cuda(folder);
  std::cout << "all examples ran\n";
  return 0;
}
