// State tensors that share memory.
#include <gtest/gtest.h>

#include <torch/serialize.h>
#include <torch/types.h>

#include "step/memory_blend.h"
#include "support/error_text.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

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

}  // namespace
}  // namespace optim_offload::testing
