#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace optim_offload::fuzz {

/// `whole` with other bytes at some places: three bytes of `edits` make one, its place (modulo the
/// size) and what stands there. A place of which the highest bit is set cuts `whole` there.
inline std::string with_byte_edits(std::string whole, std::string_view edits) {
  for (size_t i = 0; i + 2 < edits.size() && !whole.empty(); i += 3) {
    const auto byte = [&](size_t k) { return static_cast<uint8_t>(edits[i + k]); };
    const size_t place = byte(0) + size_t{256} * byte(1);
    if (place < 0x8000) {
      whole[place % whole.size()] = edits[i + 2];
    } else {
      whole.resize((place - 0x8000) % whole.size());
    }
  }
  return whole;
}

}  // namespace optim_offload::fuzz
