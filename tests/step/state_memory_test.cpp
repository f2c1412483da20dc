// Optimizers of a user's own whose state tensors share memory or are given other memory in place.
#include <gtest/gtest.h>

#include <torch/serialize.h>
#include <torch/types.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Keeps a running mean in one tensor; what happens to the other in step `n` is the subclass's.
class MemoryBlend : public Blend {
 public:
  using Blend::Blend;

 protected:
  virtual void touch(BlendParamState& state, int64_t n) = 0;
  void update(torch::Tensor parameter, const BlendOptions& /*options*/,
              BlendParamState& state) override {
    state.fast().mul_(0.9).add_(parameter.grad());
    state.steps(state.steps() + 1);
    touch(state, state.steps());
    parameter.sub_(state.fast(), 0.01);
  }
};

/// From step `First` on all parameters' states hold views of the first one's.
template <int64_t First>
class SharedBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t n) override {
    if (n < First) return;
    if (n == First) state.slow(shared_.defined() ? shared_.detach() : state.slow());
    if (!shared_.defined()) shared_ = state.slow();
  }

 private:
  torch::Tensor shared_;
};

/// In step 3 the state of the last parameter gets a view of the first one's.
class PairBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t n) override {
    if (n == 1 && !first_.defined()) first_ = state.slow();
    if (n == 1) ++parameters_;
    if (n == 3 && ++stepped_ == parameters_) state.slow(first_.detach());
  }

 private:
  torch::Tensor first_;
  int parameters_ = 0;
  int stepped_ = 0;
};

/// From step `First` on one tensor of a state is a view of the other.
template <int64_t First>
class OwnViewBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t n) override {
    if (n == First) state.slow(state.fast().view({-1}));
    if (n > First) state.slow().add_(1);
  }
};

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

/// What the first of `steps` steps that fails says.
std::string first_error(const TestDevice& device, const Recipe& recipe, Mode mode, int steps) {
  Twins twins(device, small_decoder(2), recipe, offload_options(mode));
  return error_text([&] {
    for (int step = 0; step < steps; ++step) twins.step();
  });
}

/// After a step that failed over it, state lies where it can be read, whatever is called next.
void expect_readable(CPUOffloadOptimizer& optimizer) {
  for (int call = 0; call < 3; ++call) {
    for (const auto& [key, object] : optimizer.state()) {
      const torch::Tensor& slow = static_cast<BlendParamState&>(*object).slow();
      EXPECT_NE(slow.const_data_ptr(), nullptr);
      EXPECT_TRUE(slow.isfinite().all().cpu().item<bool>());
    }
    try {
      torch::serialize::OutputArchive archive;
      if (call == 0) optimizer.save(archive);
      if (call == 1) optimizer.step();
    } catch (const c10::Error&) {
      // Other parameters' state shares memory as before.
    }
  }
}

OFFLOAD_TEST(StateMemory, OfTwoParametersFromTheStart) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    const std::string error = first_error(device, recipe_of<SharedBlend<1>>("shared"), mode, 1);
    EXPECT_HAS(error, "the states of two parameters share memory (");
    EXPECT_HAS(error, ", slow); give each memory of its own (clone())");
  }
}

OFFLOAD_TEST(StateMemory, OfTwoParametersLater) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<SharedBlend<3>>("shared later"),
                offload_options(mode));
    twins.steps(2);
    ASSERT_TRUE(twins.same());
    // In the same piece as the first it still lies on the device.
    const std::string error = error_text([&] { twins.step(); });
    EXPECT_TRUE(error.find("share memory (") != std::string::npos ||
                error.find("a state tensor over another's memory (") != std::string::npos)
        << error;
    expect_readable(*twins.wrapped);
  }
}

OFFLOAD_TEST(StateMemory, OfTwoParametersByTheUser) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    twins.step();
    BlendParamState* first = nullptr;
    for (const auto& [key, object] : twins.wrapped->state()) {
      auto& state = static_cast<BlendParamState&>(*object);
      if (first != nullptr) state.slow(first->slow().detach());
      first = &state;
    }
    EXPECT_HAS(error_text([&] { twins.wrapped->step(); }), "share memory (");
  }
}

OFFLOAD_TEST(StateMemory, OfTwoParametersAloneLater) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    EXPECT_HAS(first_error(device, recipe_of<PairBlend>("pair"), mode, 3), "memory (");
  }
}

/// Gives all parameters new state, with parts of one tensor, which overlap or not.
void share_one_tensor(torch::optim::Optimizer& optimizer, bool overlapping) {
  const auto& params = optimizer.param_groups()[0].params();
  int64_t total = 0;
  for (const auto& param : params) total += param.numel();
  const torch::Tensor whole = torch::ones({total}, params[0].options().requires_grad(false));
  int64_t begin = 0;
  for (const auto& param : params) {
    auto& state = static_cast<BlendParamState&>(*optimizer.state()[param.unsafeGetTensorImpl()]);
    const auto part = whole.narrow(0, overlapping ? 0 : begin, param.numel());
    state.fast(part.view(param.sizes()));
    begin += param.numel();
  }
}

OFFLOAD_TEST(StateMemory, PartsOfOneTensorBeforeWrapping) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    twins.step();
    auto base = twins.wrapped->release();
    share_one_tensor(*twins.plain, false);
    share_one_tensor(*base, false);
    twins.wrapped = std::make_unique<CPUOffloadOptimizer>(
        std::move(base), twins.wrapped_model.parameters, offload_options(mode));
    twins.steps(3);
    EXPECT_TRUE(twins.same());

    if (!device.copies()) continue;
    base = twins.wrapped->release();
    share_one_tensor(*base, true);
    const std::string error = error_text([&] {
      const CPUOffloadOptimizer again(std::move(base), twins.wrapped_model.parameters,
                                      offload_options(mode));
    });
    EXPECT_HAS(error, "the states of two parameters share memory (");
  }
}

OFFLOAD_TEST(StateMemory, OfOneParameterByTheUser) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe("ElementwiseBlend"), offload_options(mode));
    twins.step();
    auto& state = static_cast<BlendParamState&>(*twins.wrapped->state().begin()->second);
    const torch::Tensor own = state.slow();
    state.slow(state.fast().view({-1}));
    EXPECT_HAS(error_text([&] { twins.wrapped->step(); }), "has become a view of another (");
    state.slow(own);
    twins.steps(2);
    EXPECT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(StateMemory, OfOneParameterFromTheStart) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<OwnViewBlend<1>>("view"),
                offload_options(mode));
    for (int step = 0; step < 4; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(StateMemory, OfOneParameterLater) {
  if (!device.copies()) return;
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<OwnViewBlend<3>>("view later"),
                offload_options(mode));
    twins.steps(2);
    EXPECT_HAS(error_text([&] { twins.step(); }),
               "the optimizer made a state tensor over another's memory (");
    expect_readable(*twins.wrapped);
  }
}

/// In step 3 one tensor becomes an empty part of itself.
class EmptyingBlend : public MemoryBlend {
 public:
  using MemoryBlend::MemoryBlend;

 protected:
  void touch(BlendParamState& state, int64_t n) override {
    if (n == 3) state.slow(state.slow().view({-1}).narrow(0, 0, 0));
  }
};

OFFLOAD_TEST(StateMemory, EmptyPart) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<EmptyingBlend>("emptying"),
                offload_options(mode));
    for (int step = 0; step < 5; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(StateMemory, ExchangedByTheUserBetweenSteps) {
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

OFFLOAD_TEST(StateMemory, OfTheGradientInPlace) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<GradientDataBlend>("gradient"),
                offload_options(mode));
    for (int step = 0; step < 5; ++step) {
      twins.step();
      ASSERT_TRUE(twins.same()) << "at step " << step;
    }
  }
}

OFFLOAD_TEST(StateMemory, OtherMemoryInPlace) {
  expect_equal_whole_and_in_tiles<SetDataStateBlend>(device);
}

OFFLOAD_TEST(StateMemory, MemoryExchangedInPlace) {
  expect_equal_whole_and_in_tiles<ExchangedDataBlend>(device);
}

}  // namespace
}  // namespace optim_offload::testing
