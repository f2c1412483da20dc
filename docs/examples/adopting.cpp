// Regions of README.md and docs/adopting.md.
#include <iostream>
#include <memory>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include "examples.h"
#include "model.h"
#include "optim_offload/config.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"

namespace examples {
namespace {

std::unique_ptr<torch::optim::Optimizer> make_base(Net& model) {
  return std::make_unique<torch::optim::AdamW>(model->parameters());
}

}  // namespace

// As in the README, whose lines are longer.
// clang-format off
void readme() {
  Net model;
  const auto batches = make_batches(3);
  const auto* loader = &batches;
  // [readme]
  #include <optim_offload/cpu_offload_optimizer.h>

  auto base = std::make_unique<torch::optim::AdamW>(model->parameters(), torch::optim::AdamWOptions(3e-4));
  optim_offload::CPUOffloadOptimizer optimizer(
      std::move(base), model->named_parameters(),
      optim_offload::OffloadOptions().chunked(true).stream(true));

  for (auto& batch : *loader) {
    optimizer.zero_grad();
    loss_of(model, batch).backward();
    optimizer.step();
  }
  // [readme]
}
// clang-format on

void options() {
  Net model;
  auto base = make_base(model);
  // [options]
  const auto options = optim_offload::OffloadOptions()
                           .chunked(true)
                           .stream(true)
                           .pin_memory(optim_offload::PinMemory::Preferred)
                           .layer_pattern(R"(layers\.(\d+)\.)")
                           .piece_bytes(int64_t{40} << 20)
                           .slots(3);
  optim_offload::CPUOffloadOptimizer optimizer(std::move(base), model->named_parameters(), options);
  // [options]
}

void from_toml(const std::string& path) {
  Net model;
  // [toml]
  const auto config = optim_offload::load_optimizer_config(path);
  const std::unique_ptr<torch::optim::Optimizer> optimizer =
      optim_offload::make_optimizer(config, model->named_parameters());
  // [toml]
}

void loop() {
  Net model;
  const auto batches = make_batches(3);
  const auto* loader = &batches;
  optim_offload::CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  // [loop]
  torch::optim::StepLR schedule(optimizer, /*step_size=*/1000, /*gamma=*/0.5);
  for (const auto& batch : *loader) {
    optimizer.zero_grad();
    for (const auto& part : split(batch, 4)) {
      (loss_of(model, part) / 4).backward();  // gradients add up on the GPU
    }
    torch::nn::utils::clip_grad_norm_(model->parameters(), /*max_norm=*/1.0);
    optimizer.step();
    schedule.step();
  }
  // [loop]
}

void closure() {
  Net model;
  const Batch batch = make_batches(1).front();
  optim_offload::CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  // [closure]
  const torch::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(model, batch);
    loss.backward();
    return loss;
  });
  // [closure]
}

void parameter_groups() {
  Net model;
  // [groups]
  auto slow = std::make_unique<torch::optim::AdamWOptions>(1e-4);
  auto fast = std::make_unique<torch::optim::AdamWOptions>(1e-3);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(model->layers->parameters(), std::move(slow));
  auto base = std::make_unique<torch::optim::AdamW>(groups);
  optim_offload::CPUOffloadOptimizer optimizer(std::move(base), model->named_parameters());

  // Later, for example when the head is unfrozen:
  optimizer.add_param_group({model->head->parameters(), std::move(fast)});
  // [groups]
}

void fused() {
  Net model;
  // [fused]
  auto base = std::make_unique<optim_offload::FusedAdamW>(
      model->parameters(), torch::optim::AdamWOptions(3e-4).weight_decay(0.1));
  // [fused]
}

void muon() {
  Net model;
  // [muon]
  const auto hidden = optim_offload::MuonOptions(2e-2).weight_decay(0.01);
  const auto others = optim_offload::MuonOptions(3e-4).weight_decay(0.01);
  auto base = std::make_unique<optim_offload::Muon>(
      optim_offload::muon_param_groups(model->named_parameters(), hidden, others));
  // [muon]
}

void statistics() {
  Net model;
  optim_offload::CPUOffloadOptimizer optimizer(make_base(model), model->named_parameters());
  loss_of(model, make_batches(1).front()).backward();
  optimizer.step();
  // [stats]
  const optim_offload::OffloadStats stats = optimizer.stats();
  std::cout << stats.pieces << " pieces in " << stats.seconds << " s, "
            << stats.gigabytes_per_second() << " GB/s; on the GPU at most " << stats.peak_slot_bytes
            << " bytes, page-locked " << stats.pinned_bytes << " bytes\n";
  if (!stats.oversize_piece.empty()) {
    std::cout << stats.oversize_piece << " makes a piece of " << stats.largest_piece_bytes
              << " bytes, above piece_bytes\n";
  }
  // [stats]
}

}  // namespace examples
