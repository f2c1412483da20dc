#include "config/utf8.h"

#include <cstddef>

namespace optim_offload {

int64_t find_invalid_utf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char lead = at(i);
    size_t more = 0;
    // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (lead < 0x80) {
      more = 0;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return static_cast<int64_t>(i);
    }
    if (i + more >= text.size()) return static_cast<int64_t>(i);
    for (size_t k = 1; k <= more; ++k) {
      if (at(i + k) < low || at(i + k) > high) return static_cast<int64_t>(i);
      low = 0x80;
      high = 0xBF;
    }
    i += more + 1;
  }
  return -1;
}

}  // namespace optim_offload
