#include "support/model.h"

#include <random>

#include <c10/util/Exception.h>

#include "support/test_device.h"

namespace optim_offload::testing {

torch::Tensor random_values(const std::vector<int64_t>& shape, uint64_t seed, torch::Dtype dtype,
                            torch::Device device) {
  auto values = torch::empty(shape, torch::kFloat32);
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15ull + 1);
  auto* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    // 24 bits are what a float holds exactly.
    data[i] = static_cast<float>(engine() >> 40) * 0x1p-23f - 1.0f;
  }
  return values.to(dtype).to(device);
}

torch::Tensor make_parameter(const ParamSpec& spec, torch::Device device, uint64_t seed) {
  if (device.is_cuda()) {
    device.set_index(static_cast<c10::DeviceIndex>(spec.device_number % cuda_device_count()));
  }
  auto tensor = random_values(spec.shape, seed, spec.dtype, device);
  switch (spec.layout) {
    case Layout::Contiguous:
      break;
    case Layout::ChannelsLast:
      TORCH_CHECK(spec.shape.size() == 4, "channels_last needs four dimensions");
      tensor = tensor.contiguous(at::MemoryFormat::ChannelsLast);
      break;
    case Layout::Transposed:
      if (tensor.dim() >= 2) tensor = tensor.transpose(-1, -2).contiguous().transpose(-1, -2);
      break;
    case Layout::Strided:
      if (tensor.dim() >= 1) {
        auto wide = spec.shape;
        wide.back() *= 2;
        auto slice = torch::zeros(wide, tensor.options()).slice(-1, 0, wide.back(), 2);
        tensor = slice.copy_(tensor);
      }
      break;
  }
  return tensor.set_requires_grad(spec.requires_grad);
}

Model make_model(const std::vector<ParamSpec>& specs, torch::Device device, uint64_t seed) {
  Model model;
  for (size_t i = 0; i < specs.size(); ++i) {
    model.parameters.insert(specs[i].name, make_parameter(specs[i], device, seed * 1000 + i));
  }
  return model;
}

void set_gradients(Model& model, uint64_t seed, const GradientFilter& filter) {
  size_t i = 0;
  for (auto& item : model.parameters) {
    auto& parameter = item.value();
    if (!parameter.requires_grad() || (filter && !filter(i, item.key()))) {
      parameter.mutable_grad() = torch::Tensor();
    } else {
      auto values = random_values(parameter.sizes().vec(), seed * 1000 + i, parameter.scalar_type(),
                                  parameter.device());
      parameter.mutable_grad() = torch::empty_like(parameter.detach()).copy_(values);
    }
    ++i;
  }
}

std::vector<ParamSpec> small_decoder(int layers, torch::Dtype dtype) {
  std::vector<ParamSpec> specs;
  specs.push_back({.name = "model.embed_tokens.weight", .shape = {37, 19}, .dtype = dtype});
  for (int i = 0; i < layers; ++i) {
    const auto prefix = "model.layers." + std::to_string(i) + ".";
    specs.push_back(
        {.name = prefix + "self_attn.q_proj.weight", .shape = {19, 19}, .dtype = dtype});
    specs.push_back({.name = prefix + "mlp.up_proj.weight", .shape = {23, 19}, .dtype = dtype});
    specs.push_back({.name = prefix + "norm.weight", .shape = {19}, .dtype = dtype});
  }
  specs.push_back({.name = "model.norm.weight", .shape = {19}, .dtype = dtype});
  return specs;
}

}  // namespace optim_offload::testing
