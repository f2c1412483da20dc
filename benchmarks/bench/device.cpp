#include "bench/device.h"

#include <ctime>

namespace optim_offload::bench {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

#ifndef OPTIM_OFFLOAD_CUDA
std::unique_ptr<Device> make_cuda_device() { return nullptr; }
#endif

}  // namespace optim_offload::bench
