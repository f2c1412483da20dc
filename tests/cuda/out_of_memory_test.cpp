// A device without room, in the middle of a step.
#ifdef OPTIM_OFFLOAD_CUDA

#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "cuda/cuda_kit.h"

namespace optim_offload::testing {
namespace {

/// Takes all memory that the allocator still gives.
std::vector<at::Tensor> fill_memory() {
  std::vector<at::Tensor> filler;
  // Above 1 MiB comes from the pool of large blocks, the rest from that of small ones.
  for (const int64_t bytes : {4 * kMiB, 2 * kMiB, kMiB + 512, kMiB, kMiB / 16, int64_t{512}}) {
    try {
      while (true) filler.push_back(at::empty({bytes}, at::device(at::kCUDA).dtype(at::kByte)));
    } catch (const c10::OutOfMemoryError&) {
    }
  }
  return filler;
}

// Out of memory in the middle of a step is an error after which the next step is right.
TEST(Cuda, OutOfMemoryLeavesItUsable_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    for (const int earlier_steps : {0, 2}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << " after " << earlier_steps);
      Twins twins(device, large_layers(8), recipe("AdamW"), offload_options(mode, 4 * kMiB));
      twins.steps(earlier_steps);
      twins.gradients();
      twins.plain->step();
      c10::cuda::device_synchronize();
      allocator::emptyCache();
      size_t free_bytes = 0;
      size_t total_bytes = 0;
      ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
      const auto room = static_cast<double>(reserved() + 4 * kMiB);
      allocator::setMemoryFraction(room / static_cast<double>(total_bytes), 0);
      // Holes in what is reserved already would do for a slot.
      const std::vector<at::Tensor> filler = fill_memory();
      EXPECT_THROW(twins.wrapped->step(), c10::Error);
      allocator::setMemoryFraction(1.0, 0);
      EXPECT_EQ(twins.wrapped->param_groups()[0].params().size(), 8u);
      twins.restart_plain_from_wrapped();
      ASSERT_TRUE(twins.same());
      twins.steps(2);
      ASSERT_TRUE(twins.same());
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing

#endif  // OPTIM_OFFLOAD_CUDA
