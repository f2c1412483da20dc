#pragma once

#include <string>
#include <vector>

#include "config/toml_table.h"
#include "optim_offload/config.h"

namespace optim_offload {

/// The values that `trainer.optim.type` takes.
const std::vector<std::string>& optimizer_types();

/// Reads `type` and its hyper-parameters from `[trainer.optim]` into `config`, and rejects the keys
/// that the type does not have.
void read_hyper_parameters(TomlTable optim, OptimizerConfig& config);

}  // namespace optim_offload
