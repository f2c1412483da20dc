#include "equivalence/random_model.h"

#include <limits>
#include <sstream>

namespace optim_offload::testing {
namespace {

std::vector<int64_t> random_shape(Random& random) {
  switch (random.integer(0, 9)) {
    case 0:
      return {};
    case 1:
      return random.chance(0.5) ? std::vector<int64_t>{0} : std::vector<int64_t>{3, 0, 2};
    case 2:
    case 3:
      return {random.integer(1, 700)};
    case 4:
      return {random.integer(1, 5), random.integer(1, 9), random.integer(1, 9)};
    case 5:
      return {random.integer(1, 9), random.integer(1, 5), random.integer(1, 4),
              random.integer(1, 4)};
    default:
      return {random.integer(1, 40), random.integer(1, 40)};
  }
}

std::string random_name(Random& random, size_t number) {
  const auto stack = random.pick<std::string>(
      {"layers.", "model.layers.", "encoder.layers.", "decoder.layers.", "embed", "layers"});
  const bool layered = stack.back() == '.';
  // The number makes the name unique.
  return (layered ? stack + std::to_string(random.integer(0, 3)) + "." : stack + "_") + "w" +
         std::to_string(number);
}

}  // namespace

RandomParameter random_parameter(Random& random, size_t number, size_t groups) {
  RandomParameter result;
  result.spec.name = random_name(random, number);
  result.spec.shape = random_shape(random);
  result.spec.dtype =
      random.pick<torch::Dtype>({torch::kFloat32, torch::kFloat32, torch::kFloat32,
                                 torch::kBFloat16, torch::kFloat16, torch::kFloat64});
  if (random.chance(0.3)) {
    const bool four = result.spec.shape.size() == 4;
    result.spec.layout = random.pick<Layout>(
        {Layout::Transposed, Layout::Strided, four ? Layout::ChannelsLast : Layout::Transposed});
  }
  result.spec.device_number = random.chance(0.4) ? 1 : 0;
  result.spec.requires_grad = !random.chance(0.12);
  if (random.chance(0.1)) result.second_name = random_name(random, number) + ".tied";
  result.group = static_cast<size_t>(random.integer(0, static_cast<int64_t>(groups) - 1));
  result.first_gradient = random.chance(0.2) ? random.integer(1, 4) : 0;
  result.skip = random.chance(0.25) ? 0.4 : 0.0;
  result.plain_gradient = random.chance(0.15);
  result.sparse = random.chance(0.5) && result.spec.shape.size() == 2 &&
                  result.spec.dtype == torch::kFloat32 && result.spec.layout == Layout::Contiguous;
  return result;
}

RandomModel random_model(Random& random) {
  RandomModel model;
  model.groups = static_cast<size_t>(random.integer(1, 3));
  const auto count = static_cast<size_t>(random.integer(1, 10));
  for (size_t i = 0; i < count; ++i) {
    model.parameters.push_back(random_parameter(random, i, model.groups));
  }
  return model;
}

Model RandomModel::make(torch::Device device, uint64_t seed) const {
  std::vector<ParamSpec> specs;
  for (const auto& parameter : parameters) specs.push_back(parameter.spec);
  return make_model(specs, device, seed);
}

torch::OrderedDict<std::string, torch::Tensor> RandomModel::names(const Model& model) const {
  torch::OrderedDict<std::string, torch::Tensor> result;
  for (const auto& parameter : parameters) {
    const auto& tensor = model.parameters[parameter.spec.name];
    if (!parameter.second_name.empty()) result.insert(parameter.second_name, tensor);
    result.insert(parameter.spec.name, tensor);
  }
  return result;
}

Groups RandomModel::group(const Model& model) const {
  Groups result(groups);
  for (const auto& parameter : parameters) {
    result[parameter.group].push_back(model.parameters[parameter.spec.name]);
  }
  return result;
}

std::string RandomModel::describe() const {
  std::ostringstream out;
  for (const auto& p : parameters) {
    out << "\n    " << p.spec.name << " " << c10::IntArrayRef(p.spec.shape) << " " << p.spec.dtype
        << ", group " << p.group << ", layout " << static_cast<int>(p.spec.layout)
        << (p.spec.requires_grad ? "" : ", frozen") << (p.plain_gradient ? ", plain gradient" : "")
        << (p.sparse ? ", sparse" : "") << ", device " << p.spec.device_number;
    if (!p.second_name.empty()) out << ", also " << p.second_name;
    if (p.first_gradient > 0) out << ", gradient from step " << p.first_gradient;
    if (p.skip > 0) out << ", skips";
  }
  return out.str();
}

namespace {

/// Every other row of the gradient.
torch::Tensor sparse_rows(const torch::Tensor& gradient) {
  const auto rows = torch::arange(0, gradient.size(0), 2, gradient.options().dtype(torch::kInt64));
  return torch::sparse_coo_tensor(rows.unsqueeze(0), gradient.index_select(0, rows),
                                  gradient.sizes());
}

}  // namespace

void random_gradients(Random& random, const RandomModel& shape, int64_t step, bool sparse,
                      Model& first, Model& second) {
  std::vector<bool> present;
  for (const auto& p : shape.parameters) {
    present.push_back(step >= p.first_gradient && !random.chance(p.skip));
  }
  const auto filter = [&](size_t i, const std::string&) { return bool(present[i]); };
  const auto seed = random.bits() % 1'000'000;
  set_gradients(first, seed, filter);
  set_gradients(second, seed, filter);
  for (const auto& p : shape.parameters) {
    const bool bad = random.chance(0.03);
    const double value = random.chance(0.5) ? std::numeric_limits<double>::quiet_NaN()
                                            : std::numeric_limits<double>::infinity();
    for (auto* model : {&first, &second}) {
      auto& tensor = (*model)[p.spec.name];
      if (!tensor.grad().defined()) continue;
      if (p.plain_gradient) tensor.mutable_grad() = tensor.grad().contiguous();
      const auto gradient = tensor.grad();
      if (bad && tensor.numel() > 0) {
        (gradient.dim() == 0 ? gradient : gradient.select(-1, 0)).fill_(value);
      }
      if (sparse && p.sparse) tensor.mutable_grad() = sparse_rows(gradient);
    }
  }
}

}  // namespace optim_offload::testing
