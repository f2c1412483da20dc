#include "transfer/link.h"

#include "error.h"
#include "fault.h"
#include "transfer/counters.h"
#include "transfer/device_of.h"
#include "transfer/faulty_link.h"

namespace optim_offload::transfer {

Counters& counters() {
  static Counters instance;
  return instance;
}

namespace {

std::unique_ptr<Link> make_sound_link(c10::Device device) {
  if (is_simulated(device)) return make_simulated_link(device);
  if (device.is_cpu()) return nullptr;
#ifdef OPTIM_OFFLOAD_CUDA
  if (device.is_cuda()) return make_cuda_link(device);
#endif
  OFFLOAD_CHECK(false, "no link to device ", device.str(), "; this build offloads from the CPU",
#ifdef OPTIM_OFFLOAD_CUDA
                " and CUDA",
#else
                " only: configure with -DOPTIM_OFFLOAD_CUDA=ON for CUDA",
#endif
                "");
}

}  // namespace

std::unique_ptr<Link> make_link(c10::Device device) {
  auto link = make_sound_link(device);
  if (link != nullptr && links_are_faulty()) return make_faulty_link(std::move(link));
  return link;
}

}  // namespace optim_offload::transfer
