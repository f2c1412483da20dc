#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include "memory/page_lock.h"

namespace optim_offload::memory {
namespace {

/// Makes a device current that the process uses already, for the length of a scope: in a thread of
/// its own the current device is 0, and registering there would make a context on it.
class UsedDevice {
 public:
  UsedDevice() {
    const auto used = c10::cuda::getDeviceIndexWithPrimaryContext();
    if (!used || cudaGetDevice(&before_) != cudaSuccess) return;
    changed_ = cudaSetDevice(*used) == cudaSuccess;
  }
  ~UsedDevice() {
    // Going back to a device that is not used would make the context after all.
    if (changed_ && c10::cuda::hasPrimaryContext(static_cast<c10::DeviceIndex>(before_))) {
      static_cast<void>(cudaSetDevice(before_));
    }
  }
  UsedDevice(const UsedDevice&) = delete;
  UsedDevice& operator=(const UsedDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace

bool lock_pages_cuda(void* data, size_t bytes, std::string& why) {
  const UsedDevice used;
  const cudaError_t error = cudaHostRegister(data, bytes, cudaHostRegisterPortable);
  if (error == cudaSuccess) return true;
  why = cudaGetErrorString(error);
  static_cast<void>(cudaGetLastError());  // else the next kernel launch reports it
  return false;
}

void unlock_pages_cuda(void* data) noexcept {
  // Fails only when the driver has shut down or in a forked child, where nothing is locked.
  if (cudaHostUnregister(data) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace optim_offload::memory
