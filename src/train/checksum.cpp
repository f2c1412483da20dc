#include "train/checksum.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/error.h>

// All of it in this file, so that no library has to be there at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace optim_offload::train {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;  // bytes

}  // namespace

std::string checksum_of(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto check = [&](bool good) {
    TORCH_CHECK(good, "[optim_offload] cannot read ", path.string(), " (",
                c10::utils::str_error(errno), "); check that it is there and may be read");
  };
  check(descriptor >= 0);
  XXH64_state_t hash;
  XXH64_reset(&hash, /*seed=*/0);
  std::vector<char> buffer(kBuffer);
  ssize_t got = 0;
  while ((got = read(descriptor, buffer.data(), buffer.size())) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) XXH64_update(&hash, buffer.data(), static_cast<size_t>(got));
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  check(got == 0);
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(XXH64_digest(&hash)));
  return digits;
}

}  // namespace optim_offload::train
