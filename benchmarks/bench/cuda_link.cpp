#include "bench/cuda_link.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "bench/cuda_event.h"

namespace optim_offload::bench {

namespace {

// Larger than the processor's caches, so that copies meet the host's memory.
constexpr int64_t kHostBytes = int64_t{1} << 30;

class PinnedRegion {
 public:
  explicit PinnedRegion(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(data_ != MAP_FAILED, "[optim_offload] no ", bytes,
                " bytes of host memory to time the link with; free some");
    madvise(data_, bytes_, MADV_HUGEPAGE);
    touch();
    C10_CUDA_CHECK(cudaHostRegister(data_, bytes_, cudaHostRegisterDefault));
  }
  ~PinnedRegion() {
    C10_CUDA_CHECK_WARN(cudaHostUnregister(data_));
    munmap(data_, bytes_);
  }
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  void touch() {
    constexpr size_t kThreads = 8;
    const size_t share = (bytes_ + kThreads - 1) / kThreads;
    std::vector<std::thread> threads;
    for (size_t begin = 0; begin < bytes_; begin += share) {
      threads.emplace_back([this, begin, share] {
        std::memset(data() + begin, 1, std::min(share, bytes_ - begin));
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void* data_ = nullptr;
  size_t bytes_;
};

class DeviceRegion {
 public:
  explicit DeviceRegion(int64_t bytes) {
    C10_CUDA_CHECK(cudaMalloc(&data_, static_cast<size_t>(bytes)));
  }
  ~DeviceRegion() { C10_CUDA_CHECK_WARN(cudaFree(data_)); }
  DeviceRegion(const DeviceRegion&) = delete;
  DeviceRegion& operator=(const DeviceRegion&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Stream {
 public:
  Stream() { C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { C10_CUDA_CHECK_WARN(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// One direction: a stream and the memory at both ends.
class Lane {
 public:
  Lane(cudaMemcpyKind kind, int64_t bytes)
      : kind_(kind),
        host_bytes_(std::min(bytes, kHostBytes)),
        host_(host_bytes_),
        device_(std::min(bytes, kLinkCopyBytes)) {}

  // Queues the copy that begins `offset` bytes into the transfer of `total`.
  void copy(int64_t offset, int64_t total) {
    char* host = host_.data() + offset % host_bytes_;
    const int64_t room = host_bytes_ - offset % host_bytes_;
    const auto bytes = static_cast<size_t>(std::min({kLinkCopyBytes, total - offset, room}));
    const bool up = kind_ == cudaMemcpyHostToDevice;
    C10_CUDA_CHECK(cudaMemcpyAsync(up ? device_.data() : host, up ? host : device_.data(), bytes,
                                   kind_, stream_.get()));
  }

  cudaStream_t stream() const { return stream_.get(); }

 private:
  cudaMemcpyKind kind_;
  int64_t host_bytes_;
  PinnedRegion host_;
  DeviceRegion device_;
  Stream stream_;
};

double time_lanes(const std::vector<Lane*>& lanes, int64_t bytes) {
  CudaEvent start;
  start.record(lanes.front()->stream());
  for (Lane* lane : lanes) {
    C10_CUDA_CHECK(cudaStreamWaitEvent(lane->stream(), start.get(), 0));
  }
  for (int64_t offset = 0; offset < bytes; offset += kLinkCopyBytes) {
    for (Lane* lane : lanes) lane->copy(offset, bytes);
  }
  // All recorded before any is waited for, else the second would tell of the wait.
  std::deque<CudaEvent> ends;
  for (Lane* lane : lanes) ends.emplace_back().record(lane->stream());
  double seconds = 0;
  for (CudaEvent& end : ends) {
    end.wait();
    seconds = std::max(seconds, seconds_between(start, end));
  }
  return seconds;
}

class CudaLinkProbe : public LinkProbe {
 public:
  explicit CudaLinkProbe(int64_t bytes)
      : bytes_(bytes), up_(cudaMemcpyHostToDevice, bytes), down_(cudaMemcpyDeviceToHost, bytes) {
    time_lanes({&up_, &down_}, std::min(bytes, kLinkCopyBytes));  // the first copies are slower
  }

  int64_t bytes() const override { return bytes_; }

  double seconds(LinkUse use) override {
    switch (use) {
      case LinkUse::Up:
        return time_lanes({&up_}, bytes_);
      case LinkUse::Down:
        return time_lanes({&down_}, bytes_);
      case LinkUse::Both:
        break;
    }
    return time_lanes({&up_, &down_}, bytes_);
  }

 private:
  int64_t bytes_;
  Lane up_;
  Lane down_;
};

}  // namespace

std::unique_ptr<LinkProbe> open_cuda_link(int64_t bytes) {
  TORCH_CHECK(bytes > 0, "[optim_offload] the link cannot be timed with ", bytes,
              " bytes; give a model that has state");
  return std::make_unique<CudaLinkProbe>(bytes);
}

}  // namespace optim_offload::bench
