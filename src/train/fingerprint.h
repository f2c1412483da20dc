#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config.h"

namespace optim_offload::train {

/// What a checkpoint must share with the run that resumes it: the model's shape, the weights' dtype
/// and the optimizer's kind of state. Not the optimizer's mode: a checkpoint fits every one.
nlohmann::json shape_fingerprint(const TrainConfig& config);

/// What a resumed run should share to go on as the first would have: text, seed, batch, schedule.
nlohmann::json course_fingerprint(const TrainConfig& config, std::string_view text);

/// "dim: 64 in the checkpoint, 128 in the config" for each key that differs.
std::vector<std::string> differences(const nlohmann::json& checkpoint,
                                     const nlohmann::json& config);

}  // namespace optim_offload::train
