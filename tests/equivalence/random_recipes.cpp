#include "equivalence/random_recipes.h"

#include <sstream>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#if __has_include("optim_offload/optimizers/muon.h")
#include "optim_offload/optimizers/fused_adamw.h"
#define OPTIM_OFFLOAD_TESTS_MUON 1
#endif
#include "support/blend.h"

namespace optim_offload::testing {
namespace {

using namespace torch::optim;

template <typename T, typename Options>
Recipe make_recipe(const std::string& name, const Options& options) {
  return {.name = name,
          .make =
              [options](const Groups& groups) {
                std::vector<OptimizerParamGroup> list(groups.begin(), groups.end());
                return std::make_unique<T>(list, options);
              },
          .element_wise = true};
}

template <typename T, typename Options>
Recipe adam_recipe(Random& random, const std::string& name) {
  const double lr = random.pick<double>({1e-3, 0.01, 0.1});
  const bool amsgrad = random.chance(0.4);
  const double decay = random.pick<double>({0.0, 0.01, 0.3});
  const double beta1 = random.pick<double>({0.0, 0.5, 0.9});
  const double beta2 = random.pick<double>({0.9, 0.99, 0.999});
  std::ostringstream text;
  text << name << "(lr " << lr << ", amsgrad " << amsgrad << ", weight_decay " << decay
       << ", betas " << beta1 << " " << beta2 << ")";
  return make_recipe<T>(text.str(),
                        Options(lr).amsgrad(amsgrad).weight_decay(decay).betas({beta1, beta2}));
}

RandomRecipe sgd_recipe(Random& random) {
  const double momentum = random.pick<double>({0.0, 0.5, 0.9});
  const bool nesterov = momentum > 0 && random.chance(0.5);
  const double dampening = nesterov ? 0.0 : random.pick<double>({0.0, 0.25});
  const double decay = random.pick<double>({0.0, 0.01});
  std::ostringstream text;
  text << "SGD(momentum " << momentum << ", nesterov " << nesterov << ", dampening " << dampening
       << ", weight_decay " << decay << ")";
  return {
      make_recipe<SGD>(
          text.str(),
          SGDOptions(0.03).momentum(momentum).nesterov(nesterov).dampening(dampening).weight_decay(
              decay)),
      /*takes_sparse=*/momentum == 0 && decay == 0};
}

Recipe rmsprop_recipe(Random& random) {
  const double momentum = random.pick<double>({0.0, 0.9});
  const bool centered = random.chance(0.5);
  const double decay = random.pick<double>({0.0, 0.01});
  std::ostringstream text;
  text << "RMSprop(momentum " << momentum << ", centered " << centered << ", weight_decay " << decay
       << ")";
  return make_recipe<RMSprop>(
      text.str(), RMSpropOptions(0.02).momentum(momentum).centered(centered).weight_decay(decay));
}

RandomRecipe adagrad_recipe(Random& random) {
  const double lr_decay = random.pick<double>({0.0, 0.1});
  const double decay = random.pick<double>({0.0, 0.01});
  const double start = random.pick<double>({0.0, 0.5});
  std::ostringstream text;
  text << "Adagrad(lr_decay " << lr_decay << ", weight_decay " << decay << ", initial " << start
       << ")";
  auto recipe = make_recipe<Adagrad>(
      text.str(),
      AdagradOptions(0.05).lr_decay(lr_decay).weight_decay(decay).initial_accumulator_value(start));
  recipe.grows = false;
  return {recipe, /*takes_sparse=*/decay == 0};
}

}  // namespace

RandomRecipe random_recipe(Random& random) {
  register_blend_traits();
#ifdef OPTIM_OFFLOAD_TESTS_MUON
  const int64_t last = 12;
#else
  const int64_t last = 9;
#endif
  switch (random.integer(0, last)) {
    case 0:
      return {adam_recipe<Adam, AdamOptions>(random, "Adam")};
    case 1:
    case 2:
      return {adam_recipe<AdamW, AdamWOptions>(random, "AdamW")};
    case 3:
      return sgd_recipe(random);
    case 4:
      return {rmsprop_recipe(random)};
    case 5:
      return adagrad_recipe(random);
    case 6:
      return {recipe_of<ElementwiseBlend>("ElementwiseBlend", true)};
    case 7:
      return {recipe_of<NormBlend>("NormBlend")};
    case 8:
      return {recipe_of<ReplacingBlend>("ReplacingBlend")};
#ifdef OPTIM_OFFLOAD_TESTS_MUON
    case 10:
    case 11:
      return {adam_recipe<FusedAdamW, AdamWOptions>(random, "FusedAdamW")};
    case 12: {
      auto muon = recipe("Muon");
      muon.grows = false;  // A group without options of its own takes matrices only.
      return {muon};
    }
#endif
    default:
      return {recipe_of<GroupCounterBlend>("GroupCounterBlend")};
  }
}

OffloadOptions random_offload_options(Random& random, std::string& text) {
  const auto mode = random.pick<Mode>(
      {Mode::AllAtOnce, Mode::Sequential, Mode::Streamed, Mode::Streamed, Mode::Streamed});
  const auto piece_bytes = random.pick<int64_t>({1024, 1024, 1280, 1999, 2048, 4096, 1 << 16});
  const auto slots = random.integer(2, 5);
  text = to_string(mode) + " with " + std::to_string(slots) + " slots of " +
         std::to_string(piece_bytes) + " bytes";
  const int64_t verify = random.chance(0.15) ? 2 : 0;
  if (verify > 0) text += ", verified";
  return offload_options(mode, piece_bytes, slots).verify(verify);
}

}  // namespace optim_offload::testing
