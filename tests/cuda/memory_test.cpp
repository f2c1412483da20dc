// Device memory by the caching allocator's figures, and pinned bytes.
#ifdef OPTIM_OFFLOAD_CUDA

#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "cuda/cuda_kit.h"

namespace optim_offload::testing {
namespace {

TEST(Cuda, PeakMemoryIsSlotsAndTheBasesTemporaries_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  constexpr int64_t kPiece = 4 * kMiB;
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    LargeModel large(device, mode, 24);
    for (int step = 0; step < 3; ++step) {
      set_gradients(large.model, step);
      c10::cuda::device_synchronize();
      allocator::emptyCache();
      allocator::resetPeakStats(0);
      const auto before = allocated();
      large.steps(1);
      // LibTorch's AdamW makes up to three tensors of half a piece; the allocator may leave up to
      // 1 MiB unused in each of its blocks.
      const auto bound = 3 * kPiece + 3 * kPiece / 2 + 8 * kMiB;
      EXPECT_LE(peak_allocated() - before, bound) << "at step " << step;
      EXPECT_EQ(allocated(), before) << "slots were kept at step " << step;
    }
  }
}

TEST(Cuda, ReservedMemoryIsConstant_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    LargeModel large(device, mode, 6);
    large.steps(3);
    const auto reserved_before = reserved();
    const auto pinned_before = large.wrapped->stats().pinned_bytes;
    large.steps(200);
    EXPECT_EQ(reserved(), reserved_before);
    EXPECT_EQ(large.wrapped->stats().pinned_bytes, pinned_before);
  }
}

TEST(Cuda, SaveAndLoadKeepNoDeviceMemory_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    LargeModel large(device, mode, 6);
    large.steps(1);
    c10::cuda::device_synchronize();
    allocator::resetPeakStats(0);
    const auto before = allocated();
    const auto archive = saved(*large.wrapped);
    EXPECT_EQ(peak_allocated(), before) << "save() used device memory";
    load_saved(*large.wrapped, archive);
    EXPECT_EQ(peak_allocated(), before) << "an archive of CPU tensors needs no device memory";
    load_saved(*large.wrapped, archive, device.device());
    EXPECT_EQ(allocated(), before) << "a copy of the state stayed on the device";
  }
}

TEST(Cuda, PinnedBytesAreExact_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  LargeModel large(device, Mode::Streamed, 9);
  large.steps(1);
  const auto stats = large.wrapped->stats();
  EXPECT_EQ(stats.state_bytes, 9 * 8 * kMiB);
  if (stats.pinned_bytes == 0) GTEST_SKIP() << "this system refuses to lock memory";
  EXPECT_LE(static_cast<double>(stats.pinned_bytes), 1.01 * 9 * 8 * kMiB + 2 * kMiB);
}

}  // namespace
}  // namespace optim_offload::testing

#endif  // OPTIM_OFFLOAD_CUDA
