#pragma once

#include <cstdint>
#include <string_view>

namespace optim_offload {

/// Offset of the first byte that is not part of well-formed UTF-8, or -1.
int64_t find_invalid_utf8(std::string_view text);

}  // namespace optim_offload
