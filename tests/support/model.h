#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

namespace optim_offload::testing {

/// How a parameter lies in memory.
enum class Layout {
  Contiguous,
  ChannelsLast,  ///< Only for four dimensions.
  Transposed,    ///< Dense, last two dimensions exchanged; contiguous below two.
  Strided,       ///< Every second element of the last dimension of a wider tensor; not dense.
};

/// One parameter to make.
struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  torch::Dtype dtype = torch::kFloat32;
  Layout layout = Layout::Contiguous;
  bool requires_grad = true;
  int device_number = 0;  ///< Of CUDA devices, modulo how many there are.
};

/// Named leaf tensors, as a module's `named_parameters()` gives them.
struct Model {
  torch::OrderedDict<std::string, torch::Tensor> parameters;

  std::vector<torch::Tensor> tensors() const { return parameters.values(); }
  torch::Tensor& operator[](const std::string& name) { return parameters[name]; }
};

/// Values in [-1, 1) that depend on `seed` and `shape` alone, not on the device or the layout.
torch::Tensor random_values(const std::vector<int64_t>& shape, uint64_t seed, torch::Dtype dtype,
                            torch::Device device);

/// A leaf with values from `seed`.
torch::Tensor make_parameter(const ParamSpec& spec, torch::Device device, uint64_t seed);

/// Equal arguments give equal models.
Model make_model(const std::vector<ParamSpec>& specs, torch::Device device, uint64_t seed = 1);

/// Says which parameters (position, name) get a gradient; the others' become undefined.
using GradientFilter = std::function<bool(size_t, const std::string&)>;

/// Sets new dense gradients in the parameters' own layout, from `seed`; frozen parameters get none.
void set_gradients(Model& model, uint64_t seed, const GradientFilter& filter = nullptr);

/// A decoder's usual shapes, all small and odd: `layers` layers of three tensors, an embedding, a
/// norm. The embedding (37 x 19) needs several tiles at small piece sizes.
std::vector<ParamSpec> small_decoder(int layers, torch::Dtype dtype = torch::kFloat32);

}  // namespace optim_offload::testing
