#pragma once

#include <memory>

#include "transfer/link.h"

namespace optim_offload::transfer {

/// A link whose calls fail where a ScopedFault says so, before they have done anything; else they
/// are `link`'s. Copies count one by one.
std::unique_ptr<Link> make_faulty_link(std::unique_ptr<Link> link);

}  // namespace optim_offload::transfer
