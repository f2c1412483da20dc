// State tensors that are given other memory in place.
#include <gtest/gtest.h>

#include <torch/types.h>

#include "optim_offload/traits.h"
#include "step/memory_blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Computes its mean anew and puts it into the same tensor.
class SetDataStateBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t /*n*/) override {
    state.slow().set_data(state.slow() * 0.5 + state.fast());
  }
};

/// Exchanges the memory of its tensors.
class ExchangedDataBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t /*n*/) override {
    const torch::Tensor fast = state.fast().detach();
    state.fast().set_data(state.slow());
    state.slow().set_data(fast);
  }
};

/// In step 3 one tensor becomes an empty part of itself.
class EmptyingBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t n) override {
    if (n == 3) state.slow(state.slow().view({-1}).narrow(0, 0, 0));
  }
};

template <typename Base>
void expect_equal_whole(const TestDevice& device) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<Base>("base"), offload_options(mode));
    for (int step = 0; step < 5; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(StateInPlace, EmptyPart) { expect_equal_whole<EmptyingBlend>(device); }

OFFLOAD_TEST(StateInPlace, ExchangedByTheUserBetweenSteps) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    twins.steps(2);
    for (const bool exchange : {true, false}) {
      for (auto* optimizer :
           {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
        for (auto& [key, object] : optimizer->state()) {
          auto& state = static_cast<BlendParamState&>(*object);
          torch::Tensor fast = exchange ? state.fast().detach() : state.fast() + 1;
          if (exchange) {
            state.fast().set_data(state.slow());
            state.slow().set_data(fast);
          } else {
            state.slow().set_data(state.fast());
            state.fast().set_data(fast);
          }
        }
      }
      twins.steps(2);
      EXPECT_TRUE(twins.same());
    }
  }
}

template <typename Base>
void expect_equal_whole_and_in_tiles(const TestDevice& device) {
  for (const bool tiles : {false, true}) {
    set_optimizer_traits<Base>({.element_wise = tiles});
    for (const auto mode : kModes) {
      SCOPED_TRACE(std::string(to_string(mode)) + (tiles ? " in tiles" : ""));
      Twins twins(device, small_decoder(2), recipe_of<Base>("base", tiles), offload_options(mode));
      int64_t bytes = 0;
      for (int step = 0; step < 5; ++step) {
        twins.step();
        ASSERT_TRUE(twins.same()) << "at step " << step;
        const OffloadStats stats = twins.wrapped->stats();
        if (step == 0) bytes = stats.pinned_bytes;
        EXPECT_EQ(stats.pinned_bytes, bytes);
        if (tiles && mode != Mode::AllAtOnce && device.copies()) {
          EXPECT_GT(stats.tiles, 0);
        }
      }
    }
  }
}

/// From step 2 on the gradient's memory is in its state, too.
class GradientDataBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void update(torch::Tensor parameter, const BlendOptions& options,
              BlendParamState& state) override {
    MemoryBlend::update(parameter, options, state);
    if (state.steps() > 1) state.slow().set_data(parameter.grad());
  }
  void touch(BlendParamState& state, int64_t /*n*/) override {
    state.fast().add_(state.slow(), 0.5);
  }
};

OFFLOAD_TEST(StateInPlace, OfTheGradientInPlace) { expect_equal_whole<GradientDataBlend>(device); }

OFFLOAD_TEST(StateInPlace, OtherMemoryInPlace) {
  expect_equal_whole_and_in_tiles<SetDataStateBlend>(device);
}

OFFLOAD_TEST(StateInPlace, MemoryExchangedInPlace) {
  expect_equal_whole_and_in_tiles<ExchangedDataBlend>(device);
}

}  // namespace
}  // namespace optim_offload::testing
