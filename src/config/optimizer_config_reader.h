#pragma once

#include "config/toml_table.h"
#include "optim_offload/config.h"

namespace optim_offload {

/// Reads the `optim_*` keys of `[trainer.model]` and all of `[trainer.optim]`, and rejects unknown
/// ones among them; other keys of `[trainer.model]` are left to others. The trainer calls
/// this on its own document, then reads its sections, then `document.reject_unknown_keys()`.
OptimizerConfig read_optimizer_config(const TomlDocument& document);

}  // namespace optim_offload
