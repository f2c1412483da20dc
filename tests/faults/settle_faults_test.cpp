// State that has to be brought home between steps finds no way there: nothing else changes, and the
// next call tries again.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "fault.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

constexpr FaultSite kSites[] = {FaultSite::HostMemory, FaultSite::PageLock, FaultSite::CopyDown,
                                FaultSite::HostWait};

OffloadOptions required(Mode mode) {
  return offload_options(mode, 2048).pin_memory(PinMemory::Required);
}

/// Puts tensors of the user's own into the state of every parameter of both twins.
void replace_state(Twins& twins) {
  for (auto* optimizer :
       {twins.plain.get(), static_cast<torch::optim::Optimizer*>(twins.wrapped.get())}) {
    for (auto& entry : optimizer->state()) {
      auto& state = static_cast<torch::optim::AdamWParamState&>(*entry.second);
      state.exp_avg(state.exp_avg().to(twins.plain_model.tensors()[0].device()).mul(0.5));
    }
  }
}

// A user's tensors, other than LibTorch's, may not take the old ones' homes: the old are held here.
OFFLOAD_TEST(SettleFaults, StateThatTheUserReplaced) {
  const FaultyLinks links;
  for (const auto mode : kModes) {
    for (const auto site : kSites) {
      for (int64_t nth = 1;; ++nth) {
        SCOPED_TRACE(::testing::Message()
                     << to_string(mode) << ", " << to_string(site) << " number " << nth);
        Twins twins(device, small_decoder(1), recipe("AdamW"), required(mode));
        twins.steps(2);
        std::vector<torch::Tensor> old;
        for (auto& entry : twins.wrapped->state()) {
          old.push_back(static_cast<torch::optim::AdamWParamState&>(*entry.second).exp_avg());
        }
        replace_state(twins);
        bool thrown = false;
        bool hit = false;
        {
          const ScopedFault fault(site, nth);
          try {
            load_saved(*twins.wrapped, saved(*twins.wrapped));
          } catch (const c10::Error&) {
            thrown = true;
          }
          hit = fault.hit();
        }
        EXPECT_EQ(thrown, hit);
        ASSERT_TRUE(twins.same());
        twins.steps(2);
        ASSERT_TRUE(twins.same());
        if (!hit) break;
      }
    }
  }
}

OFFLOAD_TEST(SettleFaults, WhenItIsWrapped) {
  const FaultyLinks links;
  for (const auto mode : kModes) {
    for (const auto site : kSites) {
      for (int64_t nth = 1;; ++nth) {
        SCOPED_TRACE(::testing::Message()
                     << to_string(mode) << ", " << to_string(site) << " number " << nth);
        auto model = make_model(small_decoder(1), device.device());
        const auto before = make_model(small_decoder(1), device.device());
        // Adagrad makes its state in its constructor.
        auto base = make_base(recipe("Adagrad"), {model.tensors()});
        const ScopedFault fault(site, nth);
        std::string what;
        try {
          const CPUOffloadOptimizer wrapped(std::move(base), model.parameters, required(mode));
        } catch (const c10::Error& error) {
          what = error.what_without_backtrace();
        }
        EXPECT_EQ(fault.hit(), !what.empty()) << what;
        ASSERT_TRUE(same_parameters(before, model));
        if (!fault.hit()) break;
      }
    }
  }
}

}  // namespace
}  // namespace optim_offload::testing
