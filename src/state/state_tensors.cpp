#include "state/state_tensors.h"

#include <algorithm>
#include <mutex>
#include <sstream>

#include <ATen/ops/empty.h>
#include <c10/util/Type.h>

#include "error.h"
#include "state/archive_access.h"

namespace optim_offload::state {
namespace {

/// Calls visit(name, value) for every leaf below `value`.
template <typename Visit>
void walk(const std::string& name, const c10::IValue& value, const Visit& visit) {
  if (value.isObject()) {
    const auto& object = value.toObjectRef();
    const auto type = object.type();
    for (size_t i = 0; i < object.slots().size(); ++i) {
      const std::string& attribute = type->getAttributeName(i);
      walk(name.empty() ? attribute : name + "." + attribute, object.slots()[i], visit);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) walk(name, element, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) walk(name, element, visit);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) walk(name, entry.value(), visit);
  } else {
    visit(name, value);
  }
}

/// A compilation unit for many look-ups of a thread: making one takes longer than the look-up. Not
/// for all, as every archive leaves a class in it, about 2 KB.
std::shared_ptr<torch::jit::CompilationUnit> shared_unit() {
  constexpr int kLookUps = 256;
  thread_local std::shared_ptr<torch::jit::CompilationUnit> unit;
  thread_local int left = 0;
  if (left-- == 0 || unit == nullptr) {
    unit = std::make_shared<torch::jit::CompilationUnit>();
    left = kLookUps;
  }
  return unit;
}

/// All leaves of what was written.
std::vector<WrittenValue> leaves(torch::serialize::OutputArchive& archive) {
  std::vector<WrittenValue> values;
  walk("", module_of(archive)._ivalue(), [&](const std::string& name, const c10::IValue& value) {
    values.push_back({name, value});
  });
  return values;
}

}  // namespace

std::vector<WrittenValue> written_values(const torch::optim::OptimizerParamState& state) {
  torch::serialize::OutputArchive archive(shared_unit());
  try {
    state.serialize(archive);
  } catch (const c10::Error& error) {
    OFFLOAD_CHECK(false, "the tensors of an optimizer state cannot be found (class ",
                  c10::demangle(typeid(state).name()), ": ", error.what_without_backtrace(),
                  "); override serialize(OutputArchive&) const in that class and write every "
                  "tensor that it holds");
  }
  return leaves(archive);
}

std::vector<WrittenValue> written_values(const torch::optim::OptimizerOptions& options) {
  torch::serialize::OutputArchive archive(shared_unit());
  try {
    options.serialize(archive);
  } catch (const c10::Error&) {
    return {};
  }
  return leaves(archive);
}

std::vector<FoundTensor> find_state_tensors(const torch::optim::OptimizerParamState& state) {
  std::vector<FoundTensor> found;
  for (WrittenValue& written : written_values(state)) {
    if (!written.value.isTensor() || !written.value.toTensor().defined()) continue;
    at::Tensor tensor = std::move(written.value).toTensor();
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const FoundTensor& f) { return f.tensor.is_same(tensor); });
    if (!known) found.push_back({std::move(written.name), std::move(tensor)});
  }
  // What nobody but the archive held was made for it: numbers written as tensors, or copies.
  std::erase_if(found, [&](const FoundTensor& f) {
    if (f.tensor.use_count() > 1) return false;
    if (f.tensor.numel() > 1) {
      TORCH_WARN_ONCE(
          "[optim_offload] a state's serialize() writes a copy and not its tensor (class ",
          c10::demangle(typeid(state).name()), ", ", f.name,
          "); the tensor cannot be found and stays on the device: write the tensor itself");
    }
    return true;
  });
  return found;
}

std::string describe_options(const torch::optim::OptimizerOptions& options) {
  std::ostringstream text;
  text.precision(17);
  for (const WrittenValue& written : written_values(options)) {
    text << written.name << '=' << written.value << ';';
  }
  return text.str();
}

void check_archive_access() {
  static std::once_flag once;
  std::call_once(once, [] {
    torch::serialize::OutputArchive archive(shared_unit());
    const at::Tensor probe = at::empty({1});
    archive.write("probe", c10::IValue(probe));
    bool same = false;
    walk("", module_of(archive)._ivalue(), [&](const std::string& name, const c10::IValue& value) {
      same = same || (name == "probe" && value.isTensor() && value.toTensor().is_same(probe));
    });
    OFFLOAD_CHECK(same,
                  "this LibTorch's archives do not keep the tensors written to them, so optimizer "
                  "state cannot be found; build with 2.6 to 2.15");
  });
}

}  // namespace optim_offload::state
