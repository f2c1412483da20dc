#pragma once

#include <cstdint>
#include <filesystem>

#include <torch/optim/optimizer.h>
#include <nlohmann/json.hpp>

#include "train/model/transformer.h"

namespace optim_offload::train {

/// Where a run is. Checkpoints are taken between steps only, so that there are no gradients and no
/// half accumulation to keep; the schedule's position is the step, and the data's the piece.
struct TrainPosition {
  int64_t step = 0;    ///< Steps finished.
  int64_t pieces = 0;  ///< Pieces drawn; the next one has this index.
  int64_t tokens = 0;  ///< Tokens trained on.
};

/// Fills the empty `directory` with the weights (model.pt), the optimizer (optimizer.pt), the
/// random generators of the CPU and the model's device (random.pt), and position and `fingerprint`
/// (state.json). Uses no memory on the device.
void write_checkpoint(const std::filesystem::path& directory, const CausalLM& model,
                      const torch::optim::Optimizer& optimizer, const TrainPosition& position,
                      const nlohmann::json& fingerprint);

/// The `fingerprint` that was written with a checkpoint.
nlohmann::json read_fingerprint(const std::filesystem::path& directory);

/// Puts a checkpoint of write_checkpoint() back: weights into the model's tensors in place, state
/// and options into the optimizer, generators into the process. The optimizer may be plain or
/// offloading, whichever it was when it was saved. A plain one's state goes to the model's device;
/// an offloading one's is read on the CPU. Throws where files are damaged or shapes differ; the
/// model is then not to be used.
TrainPosition read_checkpoint(const std::filesystem::path& directory, CausalLM& model,
                              torch::optim::Optimizer& optimizer);

}  // namespace optim_offload::train
