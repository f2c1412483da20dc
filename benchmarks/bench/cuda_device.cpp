#include "bench/device.h"

#include <fstream>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/version.h>

#include "bench/cuda_event.h"
#include "bench/cuda_link.h"

namespace optim_offload::bench {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

std::string driver_version() {
  // The runtime only knows the CUDA version that the driver supports.
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  if (file >> version) return version;
  int cuda = 0;
  C10_CUDA_CHECK(cudaDriverGetVersion(&cuda));
  return "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

class CudaDevice : public Device {
 public:
  c10::Device torch_device() const override { return c10::Device(c10::kCUDA, 0); }

  Environment environment() const override {
    return {at::cuda::getDeviceProperties(0)->name, driver_version(), TORCH_VERSION, utc_now(),
            false};
  }

  void synchronize() override { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

  double timed(const std::function<void()>& work) override {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    CudaEvent start, end;
    start.record(stream);
    work();
    end.record(stream);
    end.wait();
    return seconds_between(start, end);
  }

  bool counts_memory() const override { return true; }

  Memory memory() const override {
    const auto stats = allocator::getDeviceStats(0);
    return {stats.allocated_bytes[kAll].current, stats.reserved_bytes[kAll].current};
  }

  Memory peak() const override {
    const auto stats = allocator::getDeviceStats(0);
    return {stats.allocated_bytes[kAll].peak, stats.reserved_bytes[kAll].peak};
  }

  void reset_peak() override { allocator::resetPeakStats(0); }
  void release_cached() override { allocator::emptyCache(); }

  std::unique_ptr<LinkProbe> open_link(int64_t bytes) override { return open_cuda_link(bytes); }
};

}  // namespace

std::unique_ptr<Device> make_cuda_device() {
  // Without a driver any other question throws.
  if (!at::hasCUDA() || at::cuda::device_count() == 0) return nullptr;
  at::globalContext().lazyInitDevice(c10::kCUDA);
  return std::make_unique<CudaDevice>();
}

}  // namespace optim_offload::bench
