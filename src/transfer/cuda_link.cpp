#include <array>
#include <optional>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "error.h"
#include "transfer/counters.h"
#include "transfer/link.h"

namespace optim_offload::transfer {
namespace {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(bool timed) {
    C10_CUDA_CHECK(
        cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming));
    ++counters().events;
  }
  ~CudaEvent() override {
    // Fails only after the driver has shut down, when nothing is left to free.
    if (cudaEventDestroy(event_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream that no one else draws from a pool.
class OwnStream {
 public:
  explicit OwnStream(c10::DeviceIndex device) : stream_(make(device)) { ++counters().streams; }
  ~OwnStream() {
    if (cudaStreamDestroy(stream_.stream()) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  c10::cuda::CUDAStream get() const { return stream_; }

 private:
  static c10::cuda::CUDAStream make(c10::DeviceIndex device) {
    cudaStream_t stream = nullptr;
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return c10::cuda::getStreamFromExternal(stream, device);
  }
  c10::cuda::CUDAStream stream_;
};

cudaEvent_t raw(const Event& event) { return static_cast<const CudaEvent&>(event).get(); }

class CudaLink final : public Link {
 public:
  explicit CudaLink(c10::Device device) : device_(device) {}

  c10::Device device() const override { return device_; }

  std::unique_ptr<Event> make_event(bool timed) override {
    const c10::cuda::CUDAGuard guard(device_);
    return std::make_unique<CudaEvent>(timed);
  }

  void copy(Lane lane, Direction direction, std::span<const Copy> copies) override {
    const c10::cuda::CUDAGuard guard(device_);
    const cudaStream_t queue = stream(lane);
    const auto kind =
        direction == Direction::ToDevice ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    for (const Copy& c : copies) {
      C10_CUDA_CHECK(cudaMemcpyAsync(c.dst, c.src, c.bytes, kind, queue));
    }
    counters().copies += static_cast<int64_t>(copies.size());
  }

  void record(Lane lane, Event& event) override {
    const c10::cuda::CUDAGuard guard(device_);
    C10_CUDA_CHECK(cudaEventRecord(raw(event), stream(lane)));
  }

  void wait(Lane lane, const Event& event, WaitPoint /*point*/) override {
    const c10::cuda::CUDAGuard guard(device_);
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream(lane), raw(event)));
    ++counters().waits;
  }

  void synchronize(Lane lane, WaitPoint /*point*/) override {
    if ((lane == Lane::H2D && !h2d_) || (lane == Lane::D2H && !d2h_)) return;
    const c10::cuda::CUDAGuard guard(device_);
    ++counters().host_waits;
    C10_CUDA_CHECK(cudaStreamSynchronize(stream(lane)));
  }

  double elapsed_us(const Event& begin, const Event& end) override {
    const c10::cuda::CUDAGuard guard(device_);
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventSynchronize(raw(end)));
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, raw(begin), raw(end)));
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaStream_t stream(Lane lane) {
    switch (lane) {
      case Lane::H2D:
        if (!h2d_) h2d_.emplace(device_.index());
        return h2d_->get().stream();
      case Lane::D2H:
        if (!d2h_) d2h_.emplace(device_.index());
        return d2h_->get().stream();
      case Lane::Compute:
        break;
    }
    return c10::cuda::getCurrentCUDAStream(device_.index()).stream();
  }

  c10::Device device_;
  std::optional<OwnStream> h2d_;
  std::optional<OwnStream> d2h_;
};

}  // namespace

std::unique_ptr<Link> make_cuda_link(c10::Device device) {
  return std::make_unique<CudaLink>(device);
}

}  // namespace optim_offload::transfer
