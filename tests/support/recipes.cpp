#include "support/recipes.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#if __has_include("optim_offload/optimizers/muon.h")
#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"
#define OPTIM_OFFLOAD_TESTS_MUON 1
#endif
#include "support/blend.h"

namespace optim_offload::testing {
namespace {

using torch::optim::OptimizerParamGroup;

template <typename Optimizer, typename Options>
Recipe torch_recipe(std::string name, Options options) {
  return {.name = std::move(name),
          .make =
              [options](const Groups& groups) {
                std::vector<OptimizerParamGroup> list(groups.begin(), groups.end());
                return std::make_unique<Optimizer>(list, options);
              },
          .element_wise = true};
}

#ifdef OPTIM_OFFLOAD_TESTS_MUON
/// Each group becomes one of Muon for its matrices and one of AdamW for the rest.
Recipe muon_recipe() {
  return {.name = "Muon", .make = [](const Groups& groups) {
            std::vector<OptimizerParamGroup> list;
            for (const auto& group : groups) {
              std::vector<torch::Tensor> matrices;
              std::vector<torch::Tensor> others;
              for (const auto& tensor : group) {
                (tensor.dim() == 2 ? matrices : others).push_back(tensor);
              }
              if (!matrices.empty()) {
                list.emplace_back(matrices, std::make_unique<MuonOptions>(MuonOptions(0.02)));
              }
              if (!others.empty()) {
                list.emplace_back(others,
                                  std::make_unique<MuonOptions>(MuonOptions(0.01).adamw(true)));
              }
            }
            return std::make_unique<Muon>(list);
          }};
}
#endif

std::vector<Recipe> all_recipes() {
  using namespace torch::optim;
  register_blend_traits();
  std::vector<Recipe> list;
  list.push_back(
      torch_recipe<SGD>("SGD", SGDOptions(0.02).momentum(0.9).weight_decay(0.01).nesterov(true)));
  list.push_back(torch_recipe<Adam>("Adam", AdamOptions(0.01).amsgrad(true).weight_decay(0.01)));
  list.push_back(torch_recipe<AdamW>("AdamW", AdamWOptions(0.01).weight_decay(0.1)));
  list.push_back(
      torch_recipe<RMSprop>("RMSprop", RMSpropOptions(0.01).centered(true).momentum(0.9)));
  list.push_back(torch_recipe<Adagrad>(
      "Adagrad", AdagradOptions(0.05).lr_decay(0.01).initial_accumulator_value(0.1)));
  list.back().grows = false;
  list.push_back(recipe_of<ElementwiseBlend>("ElementwiseBlend", /*element_wise=*/true));
  list.push_back(recipe_of<NormBlend>("NormBlend"));
#ifdef OPTIM_OFFLOAD_TESTS_MUON
  list.push_back(
      torch_recipe<FusedAdamW>("FusedAdamW", AdamWOptions(0.01).weight_decay(0.1).amsgrad(true)));
  list.push_back(muon_recipe());
#endif
  return list;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const auto list = all_recipes();
  return list;
}

const Recipe& recipe(const std::string& name) {
  for (const auto& candidate : recipes()) {
    if (candidate.name == name) return candidate;
  }
  TORCH_CHECK(false, "no recipe named ", name);
}

std::unique_ptr<torch::optim::Optimizer> make_base(const Recipe& recipe, const Groups& groups) {
  auto base = recipe.make(groups);
  double factor = 1.0;
  for (auto& group : base->param_groups()) {
    group.options().set_lr(group.options().get_lr() * factor);
    factor += 0.5;
  }
  return base;
}

std::string to_string(Mode mode) {
  switch (mode) {
    case Mode::AllAtOnce:
      return "AllAtOnce";
    case Mode::Sequential:
      return "Sequential";
    case Mode::Streamed:
      return "Streamed";
  }
  return "?";
}

OffloadOptions offload_options(Mode mode, int64_t piece_bytes, int64_t slots) {
  return OffloadOptions()
      .chunked(mode != Mode::AllAtOnce)
      .stream(mode == Mode::Streamed)
      .piece_bytes(piece_bytes)
      .slots(slots);
}

}  // namespace optim_offload::testing
