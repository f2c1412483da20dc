// Every optimizer, mode and device: twenty steps under a scheduler give the plain optimizer's bits.
#include <tuple>

#include <gtest/gtest.h>
#include <torch/optim/schedulers/step_lr.h>

#include "support/twins.h"

namespace optim_offload::testing {
namespace {

using Parameters = std::tuple<std::string, Mode, DeviceKind>;

class Parity : public ::testing::TestWithParam<Parameters> {};

std::string name_of(const ::testing::TestParamInfo<Parameters>& info) {
  return std::get<0>(info.param) + "_" + to_string(std::get<1>(info.param)) + "_" +
         to_string(std::get<2>(info.param));
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& recipe : recipes()) names.push_back(recipe.name);
  return names;
}

TEST_P(Parity, TwentyStepsWithStepLR) {
  const auto& [name, mode, kind] = GetParam();
  if (kind == DeviceKind::Cuda && cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  TestDevice device(kind);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    // The smallest pieces hold less than most parameters, the largest the whole model.
    for (const int64_t piece_bytes : {1024, 4096, 1 << 20}) {
      SCOPED_TRACE(::testing::Message() << dtype << ", pieces of " << piece_bytes << " bytes");
      Twins twins(device, small_decoder(3, dtype), recipe(name), offload_options(mode, piece_bytes),
                  even_and_odd);
      torch::optim::StepLR plain_schedule(*twins.plain, 6, 0.5);
      torch::optim::StepLR wrapped_schedule(*twins.wrapped, 6, 0.5);
      for (int i = 0; i < 20; ++i) {
        twins.step();
        plain_schedule.step();
        wrapped_schedule.step();
        ASSERT_TRUE(same_parameters(twins.plain_model, twins.wrapped_model)) << "at step " << i;
      }
      ASSERT_TRUE(twins.same());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, Parity,
    ::testing::Combine(::testing::ValuesIn(recipe_names()), ::testing::ValuesIn(kModes),
                       ::testing::Values(DeviceKind::Cpu, DeviceKind::Simulated, DeviceKind::Cuda)),
    name_of);

// A test that could not fail proves nothing: the comparison itself must see one changed bit.
TEST(Comparison, SeesOneBit) {
  TestDevice device(DeviceKind::Cpu);
  Twins twins(device, small_decoder(1), recipe("AdamW"), offload_options(Mode::AllAtOnce));
  twins.steps(2);
  ASSERT_TRUE(twins.same());
  auto& value = twins.plain_model["model.norm.weight"];
  auto* bits = static_cast<uint32_t*>(value.mutable_data_ptr());
  bits[3] ^= 1;
  EXPECT_FALSE(same_parameters(twins.plain_model, twins.wrapped_model));
  bits[3] ^= 1;
  ASSERT_TRUE(twins.same());
  twins.plain->param_groups()[0].options().set_lr(0.010000000000000002);
  EXPECT_FALSE(twins.same());
}

}  // namespace
}  // namespace optim_offload::testing
