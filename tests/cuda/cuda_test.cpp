// What only a CUDA device can show: streams, devices, and the caching allocator's figures.
#include <gtest/gtest.h>

#include "support/test_device.h"

#ifndef OPTIM_OFFLOAD_CUDA

TEST(Cuda, NotBuilt_CUDA) { GTEST_SKIP() << "built without CUDA"; }

#else

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr int64_t kMiB = int64_t{1} << 20;
// Long enough for a step's copies to overtake gradients that nothing makes them wait for.
constexpr int64_t kSleepCycles = 50'000'000;

const auto& aggregate(const c10::CachingAllocator::StatArray& stats) {
  return stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}
int64_t allocated() { return aggregate(allocator::getDeviceStats(0).allocated_bytes).current; }
int64_t peak_allocated() { return aggregate(allocator::getDeviceStats(0).allocated_bytes).peak; }
int64_t reserved() { return aggregate(allocator::getDeviceStats(0).reserved_bytes).current; }

/// `count` layers of one 1024 x 1024 fp32 matrix: 4 MiB of weights, 8 MiB of AdamW's state each.
std::vector<ParamSpec> large_layers(int count) {
  std::vector<ParamSpec> specs;
  for (int i = 0; i < count; ++i) {
    specs.push_back({.name = "layers." + std::to_string(i) + ".weight", .shape = {1024, 1024}});
  }
  return specs;
}

/// Keeps the device busy before each parameter.
class SlowBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  void begin_parameter(const torch::Tensor&) override { at::cuda::sleep(kSleepCycles / 20); }
};

#define SKIP_BELOW_DEVICES(count)                                                        \
  if (cuda_device_count() < (count)) {                                                   \
    GTEST_SKIP() << "needs " << (count) << " CUDA devices, has " << cuda_device_count(); \
  }

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
    auto model = make_model(large_layers(4), device.device());
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                offload_options(mode, 4 * kMiB));
    set_gradients(model, 1);
    wrapped.step();
    const auto result = torch::zeros({16 * kMiB}, torch::TensorOptions(device.device()));
    c10::cuda::device_synchronize();
    allocator::emptyCache();
    auto temporary = torch::full({16 * kMiB}, 7.0, torch::TensorOptions(device.device()));
    at::cuda::sleep(kSleepCycles);
    result.copy_(temporary);
    temporary.reset();  // The only free block: the slots are cut from it.
    wrapped.step();
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

TEST(Cuda, PeakMemoryIsSlotsAndTheBasesTemporaries_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  constexpr int64_t kPiece = 4 * kMiB;
  for (const auto mode : kChunkedModes) {
    SCOPED_TRACE(to_string(mode));
    auto model = make_model(large_layers(24), device.device());
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                offload_options(mode, kPiece));
    for (int step = 0; step < 3; ++step) {
      set_gradients(model, step);
      c10::cuda::device_synchronize();
      allocator::emptyCache();
      allocator::resetPeakStats(0);
      const auto before = allocated();
      wrapped.step();
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
    auto model = make_model(large_layers(6), device.device());
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                offload_options(mode, 4 * kMiB));
    set_gradients(model, 1);
    for (int step = 0; step < 3; ++step) wrapped.step();
    const auto reserved_before = reserved();
    const auto pinned_before = wrapped.stats().pinned_bytes;
    for (int step = 0; step < 200; ++step) wrapped.step();
    EXPECT_EQ(reserved(), reserved_before);
    EXPECT_EQ(wrapped.stats().pinned_bytes, pinned_before);
  }
}

TEST(Cuda, SaveAndLoadKeepNoDeviceMemory_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    auto model = make_model(large_layers(6), device.device());
    CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                                offload_options(mode, 4 * kMiB));
    set_gradients(model, 1);
    wrapped.step();
    c10::cuda::device_synchronize();
    allocator::resetPeakStats(0);
    const auto before = allocated();
    const auto archive = saved(wrapped);
    EXPECT_EQ(peak_allocated(), before) << "save() used device memory";
    load_saved(wrapped, archive);
    EXPECT_EQ(peak_allocated(), before) << "an archive of CPU tensors needs no device memory";
    load_saved(wrapped, archive, device.device());
    EXPECT_EQ(allocated(), before) << "a copy of the state stayed on the device";
  }
}

TEST(Cuda, PinnedBytesAreExact_CUDA) {
  SKIP_BELOW_DEVICES(1);
  TestDevice device(DeviceKind::Cuda);
  auto model = make_model(large_layers(9), device.device());
  CPUOffloadOptimizer wrapped(make_base(recipe("AdamW"), {model.tensors()}), model.parameters,
                              offload_options(Mode::Streamed, 4 * kMiB));
  set_gradients(model, 1);
  wrapped.step();
  const auto stats = wrapped.stats();
  EXPECT_EQ(stats.state_bytes, 9 * 8 * kMiB);
  if (stats.pinned_bytes == 0) GTEST_SKIP() << "this system refuses to lock memory";
  EXPECT_LE(static_cast<double>(stats.pinned_bytes), 1.01 * 9 * 8 * kMiB + 2 * kMiB);
}

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
