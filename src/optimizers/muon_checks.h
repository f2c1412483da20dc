#pragma once

#include "optim_offload/optimizers/muon.h"

namespace optim_offload {

/// Throws where a value is out of its range, naming it.
void check_muon_options(const MuonOptions& options);

}  // namespace optim_offload
