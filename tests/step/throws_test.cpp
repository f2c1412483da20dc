// After a throw: groups, options and state in place, no half-stepped state, a usable optimizer.
#include <stdexcept>

#include <gtest/gtest.h>

#include "optim_offload/traits.h"
#include "support/blend.h"
#include "support/twins.h"

namespace optim_offload::testing {
namespace {

/// Each parameter with its state is as before or as after the step, never a mixture.
void expect_each_before_or_after(const Twins& twins, const Model& before_model,
                                 const Snapshot& before) {
  const auto now = snapshot(*twins.wrapped);
  const auto after = snapshot(*twins.plain);  // The plain twin has stepped.
  ASSERT_EQ(now.state.size(), 1u);
  const auto& items = twins.wrapped_model.parameters;
  for (size_t p = 0; p < items.size(); ++p) {
    const auto& name = items[p].key();
    const auto untouched = same_tensor(before_model.parameters[name], items[p].value());
    const auto stepped = same_tensor(twins.plain_model.parameters[name], items[p].value());
    ASSERT_TRUE(untouched || stepped) << name << ": " << stepped.message();
    const auto& expected = untouched ? before.state[0][p] : after.state[0][p];
    EXPECT_TRUE(same_fields(expected, now.state[0][p]))
        << name << (untouched ? " untouched" : " stepped");
  }
}

OFFLOAD_TEST(Throws, InTheBase) {
  const auto specs = small_decoder(2);
  const auto faulty = recipe_of<FaultyBlend>("FaultyBlend");
  for (const auto mode : kModes) {
    for (const int earlier_steps : {0, 2}) {
      for (int at = 1; at <= static_cast<int>(specs.size()); at += 2) {
        SCOPED_TRACE(::testing::Message() << to_string(mode) << " after " << earlier_steps
                                          << " steps, at parameter " << at);
        Twins twins(device, specs, faulty, offload_options(mode, 4096));
        twins.steps(earlier_steps);
        const auto before = snapshot(*twins.wrapped);
        auto before_model = make_model(specs, device.device());
        for (auto& item : before_model.parameters) {
          item.value().detach().copy_(twins.wrapped_model[item.key()].detach());
        }
        const auto parameters = all_parameters(*twins.wrapped);
        const auto* options = &twins.wrapped->param_groups()[0].options();

        twins.gradients();
        twins.plain->step();
        auto& base = dynamic_cast<FaultyBlend&>(twins.wrapped->base_optimizer());
        base.fault_at = at;
        try {
          twins.wrapped->step();
          FAIL() << "the fault was swallowed";
        } catch (const std::exception& error) {
          EXPECT_NE(std::string(error.what()).find("planned fault"), std::string::npos)
              << error.what();
          if (mode != Mode::AllAtOnce) {
            EXPECT_NE(std::string(error.what()).find("[optim_offload]"), std::string::npos)
                << error.what();
          }
        }
        base.fault_at = 0;

        const auto now = all_parameters(*twins.wrapped);
        ASSERT_EQ(now.size(), parameters.size());
        for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].is_same(parameters[i]));
        EXPECT_EQ(&twins.wrapped->param_groups()[0].options(), options);
        EXPECT_TRUE(same_fields(before.options[0], snapshot(*twins.wrapped).options[0]));
        ASSERT_NO_FATAL_FAILURE(expect_each_before_or_after(twins, before_model, before));

        // From here on it goes as the plain optimizer would from the same point.
        twins.restart_plain_from_wrapped();
        ASSERT_TRUE(twins.same());
        twins.steps(2);
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

class FaultyElementwiseBlend : public FaultyBlend {
 public:
  using FaultyBlend::FaultyBlend;
};

// Tiles of one parameter may have moved on without the others; what must hold is the rest.
OFFLOAD_TEST(Throws, InTheBaseAmongTiles) {
  set_optimizer_traits<FaultyElementwiseBlend>({.element_wise = true});
  const auto faulty = recipe_of<FaultyElementwiseBlend>("FaultyElementwiseBlend", true);
  const auto specs = small_decoder(2);
  for (const auto mode : kChunkedModes) {
    for (const int earlier_steps : {0, 1}) {
      for (const size_t at : {1, 2, 5, 12}) {
        if (!device.copies() && at > specs.size()) continue;  // Nothing is tiled there.
        SCOPED_TRACE(::testing::Message()
                     << to_string(mode) << " after " << earlier_steps << " steps, at call " << at);
        Twins twins(device, specs, faulty, offload_options(mode, 1024));
        twins.steps(earlier_steps);
        const auto parameters = all_parameters(*twins.wrapped);
        twins.gradients();
        auto& base = dynamic_cast<FaultyElementwiseBlend&>(twins.wrapped->base_optimizer());
        base.fault_at = static_cast<int>(at);
        EXPECT_ANY_THROW(twins.wrapped->step());
        base.fault_at = 0;
        const auto now = all_parameters(*twins.wrapped);
        ASSERT_EQ(now.size(), parameters.size());
        for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].is_same(parameters[i]));
        twins.restart_plain_from_wrapped();
        ASSERT_TRUE(twins.same());
        twins.steps(2);
        ASSERT_TRUE(twins.same());
      }
    }
  }
}

OFFLOAD_TEST(Throws, InTheClosure) {
  for (const auto mode : kModes) {
    for (const int earlier_steps : {0, 2}) {
      SCOPED_TRACE(::testing::Message() << to_string(mode) << " after " << earlier_steps);
      Twins twins(device, small_decoder(2), recipe("AdamW"), offload_options(mode));
      twins.steps(earlier_steps);
      try {
        twins.wrapped->step([]() -> torch::Tensor { throw std::logic_error("planned fault"); });
        FAIL() << "the fault was swallowed";
      } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()).find("planned fault"), std::string::npos);
      }
      ASSERT_TRUE(twins.same()) << "nothing has moved";
      twins.steps(2);
      ASSERT_TRUE(twins.same());
    }
  }
}

class ForeignFaultBlend : public Blend {
 public:
  using Blend::Blend;
  bool fault = false;

 protected:
  void begin_parameter(const torch::Tensor& parameter) override {
    if (fault && parameter.dim() == 1) throw std::out_of_range("planned fault");
  }
};

// Exceptions that are not c10::Error come through as they are; what is in place is the same.
OFFLOAD_TEST(Throws, ExceptionsOfOtherTypes) {
  for (const auto mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    Twins twins(device, small_decoder(2), recipe_of<ForeignFaultBlend>("ForeignFaultBlend"),
                offload_options(mode, 4096));
    twins.steps(1);
    twins.gradients();
    auto& base = dynamic_cast<ForeignFaultBlend&>(twins.wrapped->base_optimizer());
    base.fault = true;
    try {
      twins.wrapped->step();
      FAIL() << "the fault was swallowed";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("planned fault"), std::string::npos);
    }
    base.fault = false;
    twins.restart_plain_from_wrapped();
    ASSERT_TRUE(twins.same());
    twins.steps(2);
    ASSERT_TRUE(twins.same());
  }
}

OFFLOAD_TEST(Throws, DestroyedDuringUnwinding) {
  const auto faulty = recipe_of<FaultyBlend>("FaultyBlend");
  for (const auto mode : kModes) {
    auto model = make_model(small_decoder(2), device.device());
    try {
      CPUOffloadOptimizer wrapped(make_base(faulty, {model.tensors()}), model.parameters,
                                  offload_options(mode, 1024));
      set_gradients(model, 1);
      wrapped.step();
      dynamic_cast<FaultyBlend&>(wrapped.base_optimizer()).fault_at = 4;
      wrapped.step();
      FAIL() << "the fault was swallowed";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("planned fault"), std::string::npos);
    }
  }
}

OFFLOAD_TEST(Throws, ReleasedAfterwards) {
  const auto faulty = recipe_of<FaultyBlend>("FaultyBlend");
  for (const auto mode : kModes) {
    Twins twins(device, small_decoder(2), faulty, offload_options(mode, 4096));
    twins.steps(2);
    twins.gradients();
    dynamic_cast<FaultyBlend&>(twins.wrapped->base_optimizer()).fault_at = 3;
    EXPECT_ANY_THROW(twins.wrapped->step());
    twins.restart_plain_from_wrapped();
    auto base = twins.wrapped->release();
    twins.gradients();
    twins.plain->step();
    base->step();
    EXPECT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model));
    EXPECT_TRUE(same_snapshot(snapshot(*twins.plain), snapshot(*base)));
  }
}

}  // namespace
}  // namespace optim_offload::testing
