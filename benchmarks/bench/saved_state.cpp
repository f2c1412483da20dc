#include "bench/saved_state.h"

#include <torch/serialize.h>

namespace optim_offload::bench {

namespace {

void collect(torch::serialize::InputArchive& archive, const std::string& prefix, SavedState& out) {
  for (const std::string& key : archive.keys()) {
    torch::serialize::InputArchive inner;
    if (archive.try_read(key, inner)) {
      collect(inner, prefix + key + "/", out);
      continue;
    }
    c10::IValue value;
    archive.read(key, value);
    if (value.isTensor()) {
      out[prefix + key] = value.toTensor().detach().cpu();
    } else if (value.isScalar()) {
      out[prefix + key] = at::scalar_tensor(value.toScalar(), at::kDouble);
    } else {
      TORCH_CHECK(false, "[optim_offload] the check cannot compare '", prefix, key, "' of type ",
                  value.tagKind(), "; teach bench/saved_state.cpp to");
    }
  }
}

}  // namespace

std::vector<SavedState> saved_state(const torch::optim::Optimizer& optimizer,
                                    const NamedParameters& parameters) {
  std::string bytes;
  torch::serialize::OutputArchive output;
  optimizer.save(output);
  output.save_to([&bytes](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });

  torch::serialize::InputArchive input;
  input.load_from(bytes.data(), bytes.size());
  torch::serialize::InputArchive states;
  input.read("state", states);
  std::vector<SavedState> result;
  for (const auto& item : parameters) {
    // The key that LibTorch gives a parameter's state.
    const auto key = std::to_string(reinterpret_cast<size_t>(item.value().unsafeGetTensorImpl()));
    SavedState saved;
    torch::serialize::InputArchive state;
    if (states.try_read(key, state)) collect(state, "", saved);
    result.push_back(std::move(saved));
  }
  return result;
}

int64_t save_to_nowhere(const torch::optim::Optimizer& optimizer) {
  int64_t bytes = 0;
  torch::serialize::OutputArchive output;
  optimizer.save(output);
  output.save_to([&bytes](const void*, size_t size) {
    bytes += static_cast<int64_t>(size);
    return size;
  });
  return bytes;
}

}  // namespace optim_offload::bench
