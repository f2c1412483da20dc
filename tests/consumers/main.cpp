// A user's program, built outside of the project: what the library shows is enough, and exceptions,
// classes and casts pass between the two, whether it is linked static or shared.
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/serialize.h>

#include "optim_offload/config.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/traits.h"
#include "user_optimizer.h"

namespace {

using optim_offload::CPUOffloadOptimizer;
using optim_offload::OffloadOptions;
namespace optim = torch::optim;

int failures = 0;

void check(bool good, const std::string& what) {
  std::cout << (good ? "good: " : "BAD: ") << what << "\n";
  failures += good ? 0 : 1;
}

torch::nn::Linear make_model() {
  torch::manual_seed(1);
  return torch::nn::Linear(8, 4);
}

void train(torch::nn::Linear model, optim::Optimizer& optimizer) {
  torch::manual_seed(2);
  for (int i = 0; i < 5; ++i) {
    const torch::Tensor x = torch::randn({16, 8});
    optimizer.zero_grad();
    torch::nn::functional::mse_loss(model(x), x.narrow(1, 0, 4)).backward();
    optimizer.step();
  }
}

std::unique_ptr<CPUOffloadOptimizer> wrap(std::unique_ptr<optim::Optimizer> base,
                                          torch::nn::Linear model) {
  return std::make_unique<CPUOffloadOptimizer>(std::move(base), model->named_parameters(),
                                               OffloadOptions().chunked(true).stream(true));
}

bool same_weights(torch::nn::Linear a, torch::nn::Linear b) {
  return at::equal(a->weight, b->weight) && at::equal(a->bias, b->bias);
}

void check_steps() {
  auto plain_model = make_model();
  auto model = make_model();
  optim::AdamW plain(plain_model->parameters(), optim::AdamWOptions(1e-2));
  auto wrapped =
      wrap(std::make_unique<optim::AdamW>(model->parameters(), optim::AdamWOptions(1e-2)), model);
  train(plain_model, plain);
  train(model, *wrapped);
  check(same_weights(plain_model, model), "the plain optimizer's bits after five steps");
  check(!same_weights(model, make_model()), "the weights have moved");

  std::stringstream stream;
  torch::save(*wrapped, stream);
  torch::load(plain, stream);
  train(plain_model, plain);
  train(model, *wrapped);
  check(same_weights(plain_model, model), "a checkpoint goes on in the plain optimizer");
}

void check_own_optimizer() {
  optim_offload::set_optimizer_traits<UserOptimizer>({.element_wise = true});
  torch::nn::Linear model(1, 1);
  {
    const at::NoGradGuard no_grad;
    model->weight.fill_(4);
    model->bias.fill_(4);
  }
  auto wrapped = wrap(std::make_unique<UserOptimizer>(model->parameters()), model);
  check(optim_offload::optimizer_traits(wrapped->base_optimizer()).element_wise,
        "traits of a user's class are found again");
  for (auto& parameter : model->parameters())
    parameter.mutable_grad() = at::full_like(parameter, 1);
  wrapped->step();
  wrapped->step();
  // 4 - 0.5 * 1 - 0.5 * 2
  check(model->weight.item<float>() == 2.5F, "a user's optimizer and state");
  const auto base = wrapped->release();
  check(dynamic_cast<UserOptimizer*>(base.get()) != nullptr, "the base comes back as it was");
}

void check_errors() {
  auto model = make_model();
  try {
    CPUOffloadOptimizer(std::make_unique<optim::AdamW>(model->parameters()),
                        model->named_parameters(), OffloadOptions().stream(true));
    check(false, "an error for stream without chunked");
  } catch (const c10::Error& error) {
    check(std::string(error.what()).find("[optim_offload] stream needs chunked") == 0,
          "an error is caught as c10::Error");
  }
  try {
    optim_offload::parse_optimizer_config("[trainer.optim]\ntype = 3\n");
    check(false, "an error for a wrong type");
  } catch (const std::exception& error) {
    check(dynamic_cast<const c10::Error*>(&error) != nullptr, "errors of settings are c10::Error");
  }
}

void check_config() {
  auto model = make_model();
  const auto made = optim_offload::make_optimizer(
      optim_offload::parse_optimizer_config("[trainer.model]\noptim_cpu_offload = true\n"
                                            "[trainer.optim]\ntype = \"muon\"\nlr = 0.25\n"),
      model->named_parameters());
  auto* wrapped = dynamic_cast<CPUOffloadOptimizer*>(made.get());
  check(wrapped != nullptr, "make_optimizer gives what a cast finds");
  check(wrapped != nullptr &&
            dynamic_cast<optim_offload::Muon*>(&wrapped->base_optimizer()) != nullptr,
        "the base is a Muon");
  const auto* options =
      dynamic_cast<optim_offload::MuonOptions*>(&made->param_groups().at(0).options());
  check(options != nullptr && options->lr() == 0.25, "options of the library's own class");
  train(model, *made);
  check(wrapped != nullptr && wrapped->stats().steps == 5, "five steps counted");

  optim_offload::FusedAdamW fused(model->parameters(), optim::AdamWOptions(1e-2));
  train(model, fused);
  check(dynamic_cast<optim::AdamWParamState*>(fused.state().begin()->second.get()) != nullptr,
        "FusedAdamW keeps AdamW's state");
}

}  // namespace

int main() {
  check_steps();
  check_own_optimizer();
  check_errors();
  check_config();
  return failures == 0 ? 0 : 1;
}
