// The base throws, in each of its calls: at its start, before each parameter, and at its end.
#include <gtest/gtest.h>

#include "faults/before_or_after.h"
#include "optim_offload/traits.h"
#include "support/blend.h"

namespace optim_offload::testing {
namespace {

enum class Place { Start, Parameter, End };

/// Throws "planned fault" when it comes to `place` for the `fault_at`th time; 0 never does.
class BrokenBlend : public Blend {
 public:
  using Blend::Blend;
  Place place = Place::Start;
  int fault_at = 0;

  torch::Tensor step(LossClosure closure = nullptr) override {
    auto loss = Blend::step(std::move(closure));
    come_to(Place::End);
    return loss;
  }

 protected:
  void begin_step() override { come_to(Place::Start); }
  void begin_parameter(const torch::Tensor&) override { come_to(Place::Parameter); }

 private:
  void come_to(Place here) {
    if (here == place && fault_at > 0 && --fault_at == 0) TORCH_CHECK(false, "planned fault");
  }
};

class BrokenElementwiseBlend : public BrokenBlend {
 public:
  using BrokenBlend::BrokenBlend;
};

void fail_each(const TestDevice& device, const Recipe& recipe, Mode mode, Place place,
               int earlier_steps, int& failed) {
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(::testing::Message()
                 << recipe.name << ", " << to_string(mode) << ", after " << earlier_steps
                 << " steps, place " << static_cast<int>(place) << " number " << nth);
    Twins twins(device, small_decoder(1), recipe, offload_options(mode, 2048, 2));
    twins.steps(earlier_steps);
    const StepStart start(twins);
    twins.gradients();
    twins.plain->step();
    auto& base = dynamic_cast<BrokenBlend&>(twins.wrapped->base_optimizer());
    base.place = place;
    base.fault_at = nth;
    std::string what;
    try {
      twins.wrapped->step();
    } catch (const c10::Error& error) {
      what = error.what_without_backtrace();
    }
    if (base.fault_at > 0) {
      ASSERT_EQ(what, "");
      ASSERT_TRUE(twins.same());
      return;
    }
    ++failed;
    ASSERT_NE(what.find("planned fault"), std::string::npos) << what;
    // The plain optimizer's own error is enough where it is stepped once, as the plain one is.
    const bool explained = what.find("[optim_offload] step() failed in piece") != std::string::npos;
    ASSERT_EQ(explained, mode != Mode::AllAtOnce) << what;
    ASSERT_NO_FATAL_FAILURE(start.expect_kept(twins, what, recipe.element_wise));
    twins.restart_plain_from_wrapped();
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

void fail_each(const TestDevice& device, const Recipe& recipe) {
  for (const auto mode : kModes) {
    for (const auto place : {Place::Start, Place::Parameter, Place::End}) {
      for (const int earlier_steps : {0, 2}) {
        int failed = 0;
        ASSERT_NO_FATAL_FAILURE(fail_each(device, recipe, mode, place, earlier_steps, failed));
        EXPECT_GT(failed, 0);
      }
    }
  }
}

OFFLOAD_TEST(BaseFaults, OfWholeParameters) {
  fail_each(device, recipe_of<BrokenBlend>("BrokenBlend"));
}

OFFLOAD_TEST(BaseFaults, AmongTiles) {
  set_optimizer_traits<BrokenElementwiseBlend>({.element_wise = true, .fixed_state = true});
  fail_each(device, recipe_of<BrokenElementwiseBlend>("BrokenElementwiseBlend", true));
}

}  // namespace
}  // namespace optim_offload::testing
