#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>

#include "fuzz/scratch_folder.h"
#include "fuzz/targets.h"
#include "optim_offload/config.h"
#include "train/config.h"

namespace optim_offload::fuzz {
namespace {

/// Pieces between zero bytes.
std::vector<std::string> split(std::string_view input) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= input.size();) {
    const size_t end = std::min(input.find('\0', begin), input.size());
    parts.emplace_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

torch::OrderedDict<std::string, torch::Tensor> small_model() {
  torch::OrderedDict<std::string, torch::Tensor> named;
  named.insert("model.layers.0.weight", at::ones({2, 3}).set_requires_grad(true));
  named.insert("model.layers.1.weight", at::ones({3, 2}).set_requires_grad(true));
  named.insert("model.norm.weight", at::ones({3}).set_requires_grad(true));
  return named;
}

}  // namespace

void settings(std::string_view input) {
  auto parts = split(input);
  OptimizerConfig config;
  if (accepts([&] { config = parse_optimizer_config(parts.front(), "fuzz.toml"); })) {
    const auto named = small_model();
    const auto optimizer = make_optimizer(config, named);
    if (config.type != "lbfgs") {
      for (const auto& item : named) item.value().mutable_grad() = at::ones(item.value().sizes());
      optimizer->step();
    }
  }

  static const ScratchFolder folder;
  const auto path = folder.path() / "fuzz.toml";
  std::ofstream(path, std::ios::binary) << parts.front();
  parts.erase(parts.begin());
  accepts([&] { train::load_train_config(path, parts); });
}

}  // namespace optim_offload::fuzz
