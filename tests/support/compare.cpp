#include "support/compare.h"

#include <cstring>
#include <sstream>

#include <torch/serialize.h>

#include "support/test_device.h"

namespace optim_offload::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

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

AssertionResult same_value(const c10::IValue& expected, const c10::IValue& actual) {
  if (expected.isTensor() && actual.isTensor()) {
    return same_tensor(expected.toTensor(), actual.toTensor());
  }
  if (expected.isTensorList() && actual.isTensorList()) {
    const auto a = expected.toTensorVector();
    const auto b = actual.toTensorVector();
    if (a.size() != b.size()) return AssertionFailure() << a.size() << " tensors, not " << b.size();
    for (size_t i = 0; i < a.size(); ++i) {
      if (auto same = same_tensor(a[i], b[i]); !same) return same << " in tensor " << i;
    }
    return AssertionSuccess();
  }
  std::ostringstream a;
  std::ostringstream b;
  a << std::hexfloat << expected;
  b << std::hexfloat << actual;
  if (a.str() != b.str()) return AssertionFailure() << a.str() << " expected, not " << b.str();
  return AssertionSuccess();
}

}  // namespace

AssertionResult same_tensor(const torch::Tensor& expected, const torch::Tensor& actual) {
  if (expected.defined() != actual.defined()) {
    return AssertionFailure() << "defined: " << expected.defined() << " expected";
  }
  if (!expected.defined()) return AssertionSuccess();
  if (expected.scalar_type() != actual.scalar_type() || expected.sizes() != actual.sizes()) {
    return AssertionFailure() << expected.toString() << expected.sizes() << " expected, not "
                              << actual.toString() << actual.sizes();
  }
  if (expected.is_sparse() != actual.is_sparse()) return AssertionFailure() << "layouts differ";
  if (expected.is_sparse()) {
    const auto a = expected.coalesce();
    const auto b = actual.coalesce();
    if (auto same = same_tensor(a.indices(), b.indices()); !same) return same << " in the indices";
    return same_tensor(a.values(), b.values());
  }
  for (int64_t d = 0; d < expected.dim(); ++d) {
    // The stride of a dimension of one element, or of an empty tensor, means nothing.
    if (expected.numel() > 0 && expected.size(d) > 1 && expected.stride(d) != actual.stride(d)) {
      return AssertionFailure() << "strides " << expected.strides() << " expected, not "
                                << actual.strides();
    }
  }
  const auto a = expected.detach().cpu().contiguous();
  const auto b = actual.detach().cpu().contiguous();
  const auto size = static_cast<int64_t>(a.element_size());
  const auto* x = static_cast<const char*>(a.const_data_ptr());
  const auto* y = static_cast<const char*>(b.const_data_ptr());
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(x + i * size, y + i * size, size) != 0) {
      return AssertionFailure() << "element " << i << " of " << a.numel() << ": "
                                << a.view(-1)[i].item<double>() << " expected, not "
                                << b.view(-1)[i].item<double>();
    }
  }
  return AssertionSuccess();
}

AssertionResult same_fields(const Fields& expected, const Fields& actual) {
  for (const auto& [key, value] : expected) {
    const auto found = actual.find(key);
    if (found == actual.end()) return AssertionFailure() << "no `" << key << "`";
    if (auto same = same_value(value, found->second); !same) return same << " in `" << key << "`";
  }
  for (const auto& [key, value] : actual) {
    if (expected.count(key) == 0) return AssertionFailure() << "`" << key << "` not expected";
  }
  return AssertionSuccess();
}

AssertionResult same_snapshot(const Snapshot& expected, const Snapshot& actual) {
  if (expected.options.size() != actual.options.size()) {
    return AssertionFailure() << expected.options.size() << " groups expected, not "
                              << actual.options.size();
  }
  for (size_t g = 0; g < expected.options.size(); ++g) {
    if (auto same = same_fields(expected.options[g], actual.options[g]); !same) {
      return same << " of the options of group " << g;
    }
    if (expected.state[g].size() != actual.state[g].size()) {
      return AssertionFailure() << "group " << g << ": " << expected.state[g].size()
                                << " parameters expected, not " << actual.state[g].size();
    }
    for (size_t p = 0; p < expected.state[g].size(); ++p) {
      if (auto same = same_fields(expected.state[g][p], actual.state[g][p]); !same) {
        return same << " of the state of parameter " << p << " of group " << g;
      }
    }
  }
  return AssertionSuccess();
}

AssertionResult same_parameters(const Model& expected, const Model& actual) {
  for (const auto& item : expected.parameters) {
    if (auto same = same_tensor(item.value(), actual.parameters[item.key()]); !same) {
      return same << " of parameter " << item.key();
    }
  }
  return AssertionSuccess();
}

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
