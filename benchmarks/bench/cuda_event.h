#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace optim_offload::bench {

/// A CUDA event that takes times. Not copied, not moved.
class CudaEvent {
 public:
  CudaEvent() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~CudaEvent() { C10_CUDA_CHECK_WARN(cudaEventDestroy(event_)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  void wait() const { C10_CUDA_CHECK(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Both must be recorded and finished.
inline double seconds_between(const CudaEvent& start, const CudaEvent& end) {
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.get(), end.get()));
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace optim_offload::bench
