#include "bench/model.h"

namespace optim_offload::bench {

namespace {

// As in an initialized model; what matters is that no value is special.
constexpr double kWeightScale = 0.02;
constexpr double kGradientScale = 0.01;

}  // namespace

NamedParameters make_parameters(const ModelSpec& spec, c10::ScalarType dtype, c10::Device device,
                                uint64_t seed) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(seed);
  const auto options = torch::TensorOptions().dtype(dtype).device(device);
  NamedParameters parameters;
  for (const auto& parameter : spec.parameters) {
    const std::vector<int64_t> sizes = parameter.cols == 0
                                           ? std::vector<int64_t>{parameter.rows}
                                           : std::vector<int64_t>{parameter.rows, parameter.cols};
    auto tensor = torch::empty(sizes, options).normal_(0, kWeightScale);
    parameters.insert(parameter.name, tensor.set_requires_grad(true));
  }
  return parameters;
}

void fill_gradients(const NamedParameters& parameters, uint64_t seed) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(seed);
  for (const auto& item : parameters) {
    auto& gradient = item.value().mutable_grad();
    if (!gradient.defined()) gradient = torch::empty_like(item.value());
    gradient.normal_(0, kGradientScale);
  }
}

}  // namespace optim_offload::bench
