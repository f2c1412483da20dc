#pragma once

#include <torch/serialize/archive.h>

namespace optim_offload::state {

/// What an archive holds, with the very tensors that were written: LibTorch hands it out only by
/// way of bytes.
torch::jit::Module& module_of(torch::serialize::OutputArchive& archive);
torch::jit::Module& module_of(torch::serialize::InputArchive& archive);

}  // namespace optim_offload::state
