#include <cuda_runtime_api.h>

#include "memory/page_lock.h"

namespace optim_offload::memory {

bool lock_pages_cuda(void* data, size_t bytes, std::string& why) {
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
