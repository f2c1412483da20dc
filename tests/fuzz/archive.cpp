#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include "fuzz/archive_edits.h"
#include "fuzz/targets.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/optimizers/fused_adamw.h"
#include "optim_offload/optimizers/muon.h"
#include "state/state_tensors.h"
#include "transfer/simulated_device.h"

namespace optim_offload::fuzz {
namespace {

namespace optim = torch::optim;
using Named = torch::OrderedDict<std::string, torch::Tensor>;

constexpr int kOptimizers = 7;
constexpr int kModes = 3;

Named make_model() {
  Named named;
  const auto add = [&](const std::string& name, at::IntArrayRef sizes) {
    named.insert(name, at::full(sizes, 0.5).set_requires_grad(true));
  };
  add("model.layers.0.weight", {2, 3});
  add("model.layers.0.bias", {3});
  // Cut into two tiles, as its state is above a piece.
  add("model.layers.1.weight", {24, 32});
  return named;
}

std::unique_ptr<optim::Optimizer> make_base(int kind, const Named& model) {
  const auto all = model.values();
  const std::vector<optim::OptimizerParamGroup> groups{
      optim::OptimizerParamGroup({all[0], all[2]}),
      optim::OptimizerParamGroup(std::vector<torch::Tensor>{all[1]})};
  switch (kind) {
    case 0:
      return std::make_unique<optim::SGD>(groups, optim::SGDOptions(0.1).momentum(0.9));
    case 1:
      return std::make_unique<optim::Adam>(groups, optim::AdamOptions(0.1).amsgrad(true));
    case 2:
      return std::make_unique<optim::AdamW>(groups, optim::AdamWOptions(0.1));
    case 3:
      return std::make_unique<optim::RMSprop>(
          groups, optim::RMSpropOptions(0.1).centered(true).momentum(0.9));
    case 4:
      return std::make_unique<optim::Adagrad>(groups, optim::AdagradOptions(0.1));
    case 5:
      return std::make_unique<FusedAdamW>(groups, optim::AdamWOptions(0.1));
    default: {
      auto marked = groups;
      marked[0].set_options(std::make_unique<MuonOptions>(0.1));
      marked[1].set_options(std::make_unique<MuonOptions>(MuonOptions(0.1).adamw(true)));
      return std::make_unique<Muon>(marked, MuonOptions(0.1));
    }
  }
}

/// Two thirds of the state of the largest parameter, which for each tensor has 3,072 bytes.
int64_t piece_bytes(int kind) {
  constexpr int kStateTensors[kOptimizers] = {1, 3, 2, 3, 1, 2, 1};
  return 2048 * kStateTensors[kind];
}

struct Wrapped {
  Named model;
  std::unique_ptr<CPUOffloadOptimizer> optimizer;

  Wrapped(int kind, int mode) : model(make_model()) {
    optimizer = std::make_unique<CPUOffloadOptimizer>(
        make_base(kind, model), model,
        OffloadOptions().chunked(mode > 0).stream(mode > 1).piece_bytes(piece_bytes(kind)));
    step();
  }

  void step() {
    for (const auto& item : model) {
      auto& grad = item.value().mutable_grad();
      if (!grad.defined()) grad = at::full_like(item.value(), 0.25);
    }
    optimizer->step();
  }

  /// All that load() may not change when it refuses: a line for each group and tensor.
  std::vector<std::string> contents() const {
    std::vector<std::string> lines;
    const auto bytes = [](const at::Tensor& tensor) {
      const auto dense = tensor.detach().contiguous();
      std::ostringstream shape;
      shape << tensor.scalar_type() << tensor.sizes() << tensor.strides();
      return shape.str() +
             std::string(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
    };
    for (const auto& group : std::as_const(*optimizer).param_groups()) {
      lines.push_back(state::describe_options(group.options()));
      for (const auto& param : group.params()) {
        lines.push_back(bytes(param));
        const auto found = optimizer->state().find(param.unsafeGetTensorImpl());
        if (found == optimizer->state().end()) continue;
        for (const auto& tensor : state::find_state_tensors(*found->second)) {
          lines.push_back(tensor.name + bytes(tensor.tensor));
        }
      }
    }
    return lines;
  }
};

torch::serialize::InputArchive opened(const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream, torch::Device(torch::kCPU));
  return archive;
}

std::string saved(const torch::serialize::OutputArchive& archive) {
  std::ostringstream stream;
  const_cast<torch::serialize::OutputArchive&>(archive).save_to(stream);
  return stream.str();
}

/// What a wrapper of that kind saves; made once.
const std::string& whole_archive(int kind) {
  static std::vector<std::string> all(kOptimizers);
  if (all[kind].empty()) {
    const Wrapped wrapped(kind, 0);
    torch::serialize::OutputArchive archive;
    wrapped.optimizer->save(archive);
    all[kind] = saved(archive);
  }
  return all[kind];
}

}  // namespace

void archive(std::string_view input) {
  if (input.empty()) return;
  const transfer::ScopedSimulatedDevice device({.poison = true});
  const auto first = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);

  const int kind = first / kModes % kOptimizers;
  static std::vector<std::optional<torch::serialize::InputArchive>> whole(kOptimizers);
  if (!whole[kind]) whole[kind] = opened(whole_archive(kind));
  torch::serialize::InputArchive from;
  try {
    from = with_edits(*whole[kind], read_edits(input));
  } catch (const c10::Error&) {
    return;  // no archive can be like that
  }

  Wrapped wrapped(kind, first % kModes);
  const auto before = wrapped.contents();
  if (accepts([&] { wrapped.optimizer->load(from); })) {
    // Values that nobody can step with may be in it.
    accepts([&] { wrapped.step(); });
    accepts([&] {
      torch::serialize::OutputArchive again;
      wrapped.optimizer->save(again);
    });
  } else {
    promise(wrapped.contents() == before, "the refused archive changed something");
    wrapped.step();
  }
}

}  // namespace optim_offload::fuzz
