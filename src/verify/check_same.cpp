#include <cstring>
#include <sstream>

#include <ATen/core/Formatting.h>
#include <ATen/core/grad_mode.h>

#include "error.h"
#include "verify/outcome.h"

namespace optim_offload::verify {
namespace {

/// The value and bits of element `i` of a contiguous tensor.
std::string show(const at::Tensor& tensor, int64_t i) {
  std::ostringstream text;
  text.precision(17);
  text << tensor.view(-1)[i].item() << " (0x";
  const auto size = static_cast<int64_t>(tensor.itemsize());
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr()) + i * size;
  constexpr const char* kDigits = "0123456789abcdef";
  for (int64_t b = size - 1; b >= 0; --b) text << kDigits[bytes[b] >> 4] << kDigits[bytes[b] & 15];
  text << ")";
  return text.str();
}

/// The place of element `i`, in order, of a tensor of these sizes.
std::vector<int64_t> place(int64_t i, at::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = i % sizes[d];
    i /= sizes[d];
  }
  return index;
}

/// What differs, or nothing.
std::string difference(const at::Tensor& expected, const at::Tensor& actual) {
  const at::NoGradGuard no_grad;
  std::ostringstream text;
  if (expected.defined() != actual.defined()) {
    text << (actual.defined() ? "it is a tensor and should be undefined"
                              : "it is undefined and should be a tensor");
    return text.str();
  }
  if (!expected.defined()) return {};
  if (expected.scalar_type() != actual.scalar_type() || expected.layout() != actual.layout() ||
      expected.sizes() != actual.sizes()) {
    text << "it is " << actual.toString() << " " << actual.sizes() << " and should be "
         << expected.toString() << " " << expected.sizes();
    return text.str();
  }
  if (expected.layout() == at::kSparse) {
    const at::Tensor a = expected.detach().coalesce();
    const at::Tensor b = actual.detach().cpu().coalesce();
    const std::string indices = difference(a.indices(), b.indices());
    return indices.empty() ? difference(a.values(), b.values()) : "in its indices, " + indices;
  }
  for (int64_t d = 0; d < expected.dim() && expected.numel() > 0; ++d) {
    // The stride of a dimension of one element means nothing.
    if (expected.size(d) < 2 || expected.stride(d) == actual.stride(d)) continue;
    text << "its strides are " << actual.strides() << " and should be " << expected.strides();
    return text.str();
  }
  const at::Tensor a = expected.detach().contiguous();
  const at::Tensor b = actual.detach().cpu().contiguous();
  const auto bytes = static_cast<size_t>(a.nbytes());
  const auto* x = static_cast<const char*>(a.const_data_ptr());
  const auto* y = static_cast<const char*>(b.const_data_ptr());
  if (bytes == 0 || std::memcmp(x, y, bytes) == 0) return {};
  const auto size = static_cast<int64_t>(a.itemsize());
  int64_t i = 0;
  while (std::memcmp(x + i * size, y + i * size, a.itemsize()) == 0) ++i;
  text << "element " << c10::IntArrayRef(place(i, a.sizes())) << " of " << a.sizes() << " is "
       << show(b, i) << " and should be " << show(a, i);
  return text.str();
}

std::string difference(const c10::IValue& expected, const c10::IValue& actual) {
  if (expected.isTensor() && actual.isTensor()) {
    return difference(expected.toTensor(), actual.toTensor());
  }
  std::ostringstream a;
  std::ostringstream b;
  a.precision(17);
  b.precision(17);
  a << expected;
  b << actual;
  return a.str() == b.str() ? std::string() : "it is " + b.str() + " and should be " + a.str();
}

/// As the above, with the name of the value that differs.
std::string difference(const Values& expected, const Values& actual) {
  for (size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    if (expected[i].name != actual[i].name) {
      return "it has " + actual[i].name + " and should have " + expected[i].name;
    }
    const std::string what = difference(expected[i].value, actual[i].value);
    if (!what.empty()) return expected[i].name + ": " + what;
  }
  if (expected.size() == actual.size()) return {};
  return "it has " + std::to_string(actual.size()) + " values and should have " +
         std::to_string(expected.size());
}

void check(const std::string& owner, const std::string& what, int64_t step) {
  OFFLOAD_CHECK(
      what.empty(), "verify: step ", step, " differs from the plain optimizer's (", owner, ", ",
      what,
      "); the step is done, with wrong results: go back to a checkpoint. If the optimizer is your "
      "own, mend its traits, or step it with chunked(false); else report this");
}

}  // namespace

void check_same(const Outcome& expected, const state::Registry& registry, const Groups& groups,
                const state::StateMap& states, const at::Tensor& loss, int64_t step) {
  const auto& members = registry.members();
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string label = members[i].label();
    check("parameter " + label, difference(expected.params[i], members[i].param), step);
    check("gradient of " + label, difference(expected.grads[i], members[i].param.grad()), step);
    const auto entry = states.find(members[i].param.unsafeGetTensorImpl());
    const bool has_state = entry != states.end() && entry->second != nullptr;
    const auto& state = expected.states[i];
    if (has_state != state.has_value()) {
      check("state of " + label,
            has_state ? "it is there and should not be" : "it is not there and should be", step);
    }
    if (!has_state) continue;
    check("state of " + label, difference(*state, state::written_values(*entry->second)), step);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].has_options()) continue;
    check("options of group " + std::to_string(g),
          difference(expected.options[g], state::written_values(groups[g].options())), step);
  }
  check("the returned loss", difference(expected.loss, loss), step);
}

}  // namespace optim_offload::verify
