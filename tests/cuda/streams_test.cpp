// The caller's streams and devices, and work that is still queued on them.
#ifdef OPTIM_OFFLOAD_CUDA

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "cuda/cuda_kit.h"
#include "support/blend.h"

namespace optim_offload::testing {
namespace {

/// Keeps the device busy before each parameter.
class SlowBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void begin_parameter(const torch::Tensor&) override { at::cuda::sleep(kSleepCycles / 20); }
};

TEST(Cuda, CallerOnANonDefaultStream_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe("AdamW"), offload_options(mode, 1024));
    twins.steps(1);
    c10::cuda::device_synchronize();
    const auto stream = c10::cuda::getStreamFromPool(false, 0);
    {
      c10::cuda::CUDAStreamGuard guard(stream);
      for (int step = 0; step < 3; ++step) {
        at::cuda::sleep(kSleepCycles);
        twins.step();
        EXPECT_EQ(c10::cuda::getCurrentCUDAStream(0), stream) << "the caller's stream was changed";
      }
      // Work that the caller queues after step() sees the new weights.
      ASSERT_TRUE(twins.same());
    }
  }
}

TEST(Cuda, GradientsOfASideStream_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(3), recipe("AdamW"), offload_options(mode, 1024));
    const auto side = c10::cuda::getStreamFromPool(true, 0);
    for (int step = 0; step < 3; ++step) {
      twins.gradients();
      at::cuda::CUDAEvent made;
      made.record(c10::cuda::getCurrentCUDAStream(0));
      at::cuda::CUDAEvent scaled;
      {
        c10::cuda::CUDAStreamGuard guard(side);
        made.block(side);
        at::cuda::sleep(kSleepCycles);
        for (auto* model : {&twins.plain_model, &twins.wrapped_model}) {
          for (auto& tensor : model->tensors()) tensor.mutable_grad().mul_(0.25);
        }
        scaled.record(side);
      }
      scaled.block(c10::cuda::getCurrentCUDAStream(0));
      twins.wrapped->step();
      twins.plain->step();
    }
    ASSERT_TRUE(twins.same());
  }
}

// The slots' memory may still be read by work that the caller queued and whose tensors it let go.
TEST(Cuda, SlotsWaitForTheirMemorysEarlierUse_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    LargeModel large(device, mode, 4);
    large.steps(1);
    const auto result = torch::zeros({16 * kMiB}, torch::TensorOptions(device.device()));
    c10::cuda::device_synchronize();
    allocator::emptyCache();
    auto temporary = torch::full({16 * kMiB}, 7.0, torch::TensorOptions(device.device()));
    at::cuda::sleep(kSleepCycles);
    result.copy_(temporary);
    temporary.reset();  // The only free block: the slots are cut from it.
    large.steps(1);
    EXPECT_TRUE(result.eq(7.0).all().item<bool>()) << "copied over what was still to be read";
  }
}

// A step that is slow on the device: its state must not be copied home before it is over.
TEST(Cuda, StateIsCopiedHomeAfterASlowStep_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<SlowBlend>("SlowBlend"),
                offload_options(mode, 4096));
    for (int step = 0; step < 3; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

TEST(Cuda, ParametersOnAnotherThanTheCurrentDevice_CUDA) {
  SKIP_BELOW_DEVICES(2);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Model models[2];
    std::unique_ptr<torch::optim::Optimizer> plain;
    std::unique_ptr<CPUOffloadOptimizer> wrapped;
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < 6; ++i) {
        models[side].parameters.insert(
            "layers." + std::to_string(i / 2) + ".w" + std::to_string(i % 2),
            random_values({33, 17}, i, torch::kFloat32, torch::Device(torch::kCUDA, i % 2))
                .set_requires_grad(true));
      }
    }
    plain = make_base(recipe("AdamW"), {models[0].tensors()});
    wrapped =
        std::make_unique<CPUOffloadOptimizer>(make_base(recipe("AdamW"), {models[1].tensors()}),
                                              models[1].parameters, offload_options(mode, 1024));
    for (int step = 0; step < 4; ++step) {
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(step % 2));
      for (auto& model : models) set_gradients(model, step);
      plain->step();
      wrapped->step();
      EXPECT_EQ(c10::cuda::current_device(), step % 2) << "the current device was changed";
      ASSERT_TRUE(same_parameters(models[0], models[1]));
    }
    EXPECT_TRUE(same_snapshot(snapshot(*plain), snapshot(*wrapped)));
    if (mode != Mode::AllAtOnce) {
      EXPECT_EQ(wrapped->stats().chunks, 6);
    }
    auto base = wrapped->release();
    EXPECT_TRUE(same_snapshot(snapshot(*plain), snapshot(*base)));
  }
}

}  // namespace
}  // namespace optim_offload::testing

#endif  // OPTIM_OFFLOAD_CUDA
