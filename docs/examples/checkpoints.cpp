// Regions of docs/checkpoints.md and docs/errors.md.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>

#include <c10/util/Exception.h>
#include <torch/optim/adamw.h>
#include <torch/serialize.h>

#include "examples.h"
#include "model.h"
#include "optim_offload/cpu_offload_optimizer.h"

namespace examples {
namespace {

using optim_offload::CPUOffloadOptimizer;

std::unique_ptr<torch::optim::Optimizer> make_base(Net& model) {
  return std::make_unique<torch::optim::AdamW>(model->parameters());
}

void train_a_step(Net& model, torch::optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  loss_of(model, make_batches(1).front()).backward();
  optimizer.step();
}

}  // namespace

void saving(const std::string& folder) {
  Net model;
  CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  train_a_step(model, optimizer);
  // [save]
  namespace fs = std::filesystem;
  torch::save(model, folder + "/model.pt");
  torch::save(optimizer, folder + "/optimizer.pt.new");
  fs::rename(folder + "/optimizer.pt.new", folder + "/optimizer.pt");
  // [save]

  // [save-safely]
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ofstream file(folder + "/optimizer.pt.new", std::ios::binary);
  archive.save_to([&](const void* data, size_t bytes) {
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    return bytes;  // a failure is seen below
  });
  file.close();
  if (!file) throw std::runtime_error("the checkpoint was not written: is the disk full?");
  // [save-safely]

  CPUOffloadOptimizer wrapped(make_base(model), model->named_parameters());
  // [load]
  torch::load(model, folder + "/model.pt");
  torch::load(wrapped, folder + "/optimizer.pt", torch::kCPU);
  // [load]
  train_a_step(model, wrapped);

  torch::optim::AdamW plain(model->parameters());
  torch::load(plain, folder + "/optimizer.pt");
  torch::save(plain, folder + "/plain.pt");
  CPUOffloadOptimizer from_plain(make_base(model), model->named_parameters());
  // [from-plain]
  torch::load(from_plain, folder + "/plain.pt", torch::kCPU);
  // [from-plain]
  train_a_step(model, from_plain);
}

void back_to_plain_on_cuda(const std::string& folder) {
  Net model;
  {
    CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
    train_a_step(model, optimizer);
    torch::save(optimizer, folder + "/optimizer.pt");
  }
  model->to(torch::kCUDA);
  // [to-plain]
  torch::optim::AdamW plain(model->parameters());
  torch::load(plain, folder + "/optimizer.pt", torch::kCUDA);
  // [to-plain]
}

void releasing() {
  Net model;
  CPUOffloadOptimizer wrapped(make_base(model), model->named_parameters());
  train_a_step(model, wrapped);
  // [release]
  std::unique_ptr<torch::optim::Optimizer> plain = wrapped.release();
  // [release]
  train_a_step(model, *plain);
}

void failed_load(const std::string& folder) {
  Net model;
  CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  train_a_step(model, optimizer);
  const std::string path = folder + "/no-such-file.pt";
  // [failed-load]
  try {
    torch::load(optimizer, path, torch::kCPU);
  } catch (const c10::Error& error) {
    std::cerr << path << " not taken: " << error.what_without_backtrace() << "\n";
    // Groups, options and state are as before: go on, or try an older checkpoint.
  }
  // [failed-load]
  train_a_step(model, optimizer);
}

void failed_step() {
  Net model;
  CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  train_a_step(model, optimizer);
  // [failed-step]
  try {
    optimizer.step();
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << "\n";
    // Some parameters may have moved on. Go back to the last checkpoint, weights and optimizer.
  }
  // [failed-step]
}

}  // namespace examples
