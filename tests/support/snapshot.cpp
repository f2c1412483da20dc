#include "support/snapshot.h"

#include <sstream>

#include <torch/serialize.h>

#include "support/test_device.h"

namespace optim_offload::testing {
namespace {

std::string write(const torch::serialize::OutputArchive& archive) {
  std::ostringstream stream;
  const_cast<torch::serialize::OutputArchive&>(archive).save_to(stream);
  return stream.str();
}

torch::serialize::InputArchive read(const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream, torch::Device(torch::kCPU));
  return archive;
}

Fields fields_of(torch::serialize::InputArchive& archive) {
  Fields fields;
  for (const auto& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    fields[key] = value;
  }
  return fields;
}

}  // namespace

std::vector<torch::Tensor> all_parameters(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> list;
  for (const auto& group : optimizer.param_groups()) {
    list.insert(list.end(), group.params().begin(), group.params().end());
  }
  return list;
}

Snapshot snapshot(const torch::optim::Optimizer& optimizer) {
  expect_copies_done();
  // One archive for all, as writing one takes longer than what is in it.
  torch::serialize::OutputArchive out;
  const auto write_object = [&](const std::string& key, const auto& object) {
    torch::serialize::OutputArchive entry(out.compilation_unit());
    object.serialize(entry);
    out.write(key, entry);
  };
  const auto& groups = optimizer.param_groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto group = std::to_string(g);
    write_object("options" + group, groups[g].options());
    for (size_t p = 0; p < groups[g].params().size(); ++p) {
      const auto found = optimizer.state().find(groups[g].params()[p].unsafeGetTensorImpl());
      if (found == optimizer.state().end() || !found->second) continue;
      write_object("state" + group + "_" + std::to_string(p), *found->second);
    }
  }

  auto in = read(write(out));
  const auto read_object = [&](const std::string& key) {
    torch::serialize::InputArchive entry;
    return in.try_read(key, entry) ? fields_of(entry) : Fields{};
  };
  Snapshot result;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto group = std::to_string(g);
    result.options.push_back(read_object("options" + group));
    auto& states = result.state.emplace_back();
    for (size_t p = 0; p < groups[g].params().size(); ++p) {
      states.push_back(read_object("state" + group + "_" + std::to_string(p)));
    }
  }
  return result;
}

Snapshot saved_snapshot(const torch::optim::Optimizer& optimizer) {
  expect_copies_done();
  auto archive = read(saved(optimizer));
  torch::serialize::InputArchive state;
  torch::serialize::InputArchive groups;
  archive.read("state", state);
  archive.read("param_groups", groups);
  torch::Tensor size;
  groups.read("param_groups/size", size);
  Snapshot result;
  for (int64_t g = 0; g < size.item<int64_t>(); ++g) {
    torch::serialize::InputArchive group;
    torch::serialize::InputArchive options;
    groups.read("param_groups/" + std::to_string(g), group);
    group.read("options", options);
    result.options.push_back(fields_of(options));
    auto& states = result.state.emplace_back();
    torch::Tensor count;
    group.read("params/size", count);
    for (int64_t p = 0; p < count.item<int64_t>(); ++p) {
      c10::IValue key;
      group.read("params/" + std::to_string(p), key);
      torch::serialize::InputArchive entry;
      states.push_back(state.try_read(key.toStringRef(), entry) ? fields_of(entry) : Fields{});
    }
  }
  return result;
}

int64_t state_bytes(const torch::optim::Optimizer& optimizer) {
  int64_t bytes = 0;
  for (const auto& group : snapshot(optimizer).state) {
    for (const auto& fields : group) {
      for (const auto& [key, value] : fields) {
        if (value.isTensor()) bytes += static_cast<int64_t>(value.toTensor().nbytes());
      }
    }
  }
  return bytes;
}

std::string saved(const torch::optim::Optimizer& optimizer) {
  std::ostringstream stream;
  torch::save(optimizer, stream);
  return stream.str();
}

void load_saved(torch::optim::Optimizer& optimizer, const std::string& archive,
                std::optional<torch::Device> device) {
  std::istringstream stream(archive);
  torch::load(optimizer, stream, device);
}

}  // namespace optim_offload::testing
