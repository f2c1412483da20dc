#pragma once

#include <cstdint>
#include <string>

#include <c10/util/Exception.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include "bench/model_spec.h"

namespace optim_offload::bench {

using NamedParameters = torch::OrderedDict<std::string, torch::Tensor>;

/// Parameters of `spec` on `device`, made there from `seed`; the same seed gives the same bits.
NamedParameters make_parameters(const ModelSpec& spec, c10::ScalarType dtype, c10::Device device,
                                uint64_t seed);

/// Fills each parameter's gradient, made where there is none, from `seed`.
void fill_gradients(const NamedParameters& parameters, uint64_t seed);

}  // namespace optim_offload::bench
