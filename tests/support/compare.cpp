#include "support/compare.h"

#include <cstring>

namespace optim_offload::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

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

}  // namespace optim_offload::testing
