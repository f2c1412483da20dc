#include "train/checkpoint.h"

#include <cerrno>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <vector>

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <c10/util/error.h>
#include <torch/serialize.h>

#include "error.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "train/durable_files.h"
#include "train/json_file.h"

namespace optim_offload::train {
namespace {

/// The default generators whose states a run has: of the CPU, then of the model's device.
std::vector<at::Generator> generators(torch::Device device) {
  std::vector<at::Generator> all{at::globalContext().defaultGenerator(torch::kCPU)};
  if (!device.is_cpu()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

nlohmann::json read_state(const std::filesystem::path& directory) {
  const auto path = directory / "state.json";
  auto state = read_json(path);
  TORCH_CHECK(state.is_object() && state.contains("position") && state.contains("fingerprint"),
              "[optim_offload] ", path.string(), " is damaged; resume from another checkpoint");
  return state;
}

int64_t number_of(const nlohmann::json& position, const char* key,
                  const std::filesystem::path& directory) {
  const auto value = position.is_object() ? position.value(key, nlohmann::json()) : nullptr;
  TORCH_CHECK(value.is_number_integer() && value.get<int64_t>() >= 0, "[optim_offload] ",
              (directory / "state.json").string(), " has no good position (", key, " = ",
              value.dump(), "); resume from another checkpoint");
  return value.get<int64_t>();
}

/// LibTorch's own writing of a file ends the process where the disk is full, as a destructor of it
/// throws. So it is told that all is written, and the stream is looked at afterwards.
void save_archive(torch::serialize::OutputArchive& archive, const std::filesystem::path& path) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  archive.save_to([&](const void* data, size_t bytes) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    return bytes;
  });
  out.close();
  TORCH_CHECK(out.good(), "[optim_offload] cannot write ", path.string(), " (",
              c10::utils::str_error(errno), "); check space and permissions");
}

torch::serialize::InputArchive open_archive(const std::filesystem::path& path,
                                            torch::Device device) {
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(path.string(), device);
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "[optim_offload] ", path.string(), " cannot be read (", message_of(error),
                "); resume from another checkpoint");
  }
  return archive;
}

// torch::nn::Module::load replaces tensors' data, which would put a model that is read on the CPU
// there; here the bytes go into the tensors that the optimizer and the model have.
void read_module(torch::serialize::InputArchive& archive, torch::nn::Module& module,
                 const std::string& prefix) {
  for (auto& item : module.named_parameters(/*recurse=*/false)) {
    auto& parameter = item.value();
    const auto name = prefix + item.key();
    torch::Tensor saved;
    TORCH_CHECK(archive.try_read(item.key(), saved), "[optim_offload] the checkpoint has no ", name,
                "; resume with the model that it was made with");
    TORCH_CHECK(saved.sizes() == parameter.sizes() && saved.dtype() == parameter.dtype(),
                "[optim_offload] ", name, " is ", saved.dtype(), saved.sizes(),
                " in the checkpoint and ", parameter.dtype(), parameter.sizes(),
                " in the model; resume with the model that it was made with");
    parameter.copy_(saved);
  }
  for (auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    torch::serialize::InputArchive inner;
    TORCH_CHECK(archive.try_read(child.key(), inner), "[optim_offload] the checkpoint has no ",
                prefix, child.key(), "; resume with the model that it was made with");
    read_module(inner, *child.value(), prefix + child.key() + ".");
  }
}

}  // namespace

void write_checkpoint(const std::filesystem::path& directory, const CausalLM& model,
                      const torch::optim::Optimizer& optimizer, const TrainPosition& position,
                      const nlohmann::json& fingerprint) {
  torch::serialize::OutputArchive weights;
  model.save(weights);
  save_archive(weights, directory / "model.pt");

  torch::serialize::OutputArchive state;
  optimizer.save(state);
  save_archive(state, directory / "optimizer.pt");

  torch::serialize::OutputArchive random;
  for (auto& generator : generators(model.device())) {
    const std::scoped_lock lock(generator.mutex());
    random.write(generator.device().is_cpu() ? "cpu" : "cuda", generator.get_state());
  }
  save_archive(random, directory / "random.pt");

  const nlohmann::json json = {
      {"position",
       {{"step", position.step}, {"pieces", position.pieces}, {"tokens", position.tokens}}},
      {"fingerprint", fingerprint}};
  write_file(directory / "state.json", json.dump(2) + "\n");
}

nlohmann::json read_fingerprint(const std::filesystem::path& directory) {
  return read_state(directory)["fingerprint"];
}

TrainPosition read_checkpoint(const std::filesystem::path& directory, CausalLM& model,
                              torch::optim::Optimizer& optimizer) {
  const torch::NoGradGuard no_grad;
  const auto json = read_state(directory)["position"];
  const TrainPosition position{.step = number_of(json, "step", directory),
                               .pieces = number_of(json, "pieces", directory),
                               .tokens = number_of(json, "tokens", directory)};

  auto weights = open_archive(directory / "model.pt", torch::kCPU);
  read_module(weights, model, "");

  const bool offloads = dynamic_cast<const CPUOffloadOptimizer*>(&optimizer) != nullptr;
  auto state = open_archive(directory / "optimizer.pt",
                            offloads ? torch::Device(torch::kCPU) : model.device());
  try {
    optimizer.load(state);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // LibTorch's reader has errors of several classes.
    TORCH_CHECK(false, "[optim_offload] ", (directory / "optimizer.pt").string(),
                " does not fit the optimizer (", error.what(), "); resume from another checkpoint");
  }

  auto random = open_archive(directory / "random.pt", torch::kCPU);
  // A run that moves between CPU and GPU has no state for the new device, and keeps the seeded one.
  auto all = generators(model.device());
  for (auto& generator : all) {
    torch::Tensor saved;
    if (!random.try_read(generator.device().is_cpu() ? "cpu" : "cuda", saved)) continue;
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(saved);
  }
  return position;
}

}  // namespace optim_offload::train
