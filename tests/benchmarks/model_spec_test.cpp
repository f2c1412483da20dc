#include "bench/model_spec.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <c10/util/Exception.h>

#include "bench/optimizers.h"

namespace optim_offload::bench {
namespace {

// Bytes of AdamW's state for the matrices alone, as the targets' round figures count it.
int64_t matrix_state(const ModelSpec& spec) {
  int64_t elements = 0;
  for (const auto& parameter : spec.parameters) {
    if (parameter.cols != 0) elements += parameter.numel();
  }
  return 8 * elements;
}

TEST(ModelSpec, StandardModelsHaveTheStateOfTheirTargets) {
  const std::vector<std::pair<const char*, int64_t>> targets = {
      {"small", 1383}, {"medium", 4084}, {"large", 33250}};
  for (const auto& [name, mib] : targets) {
    const auto spec = named_spec(name);
    EXPECT_EQ(matrix_state(spec), mib << 20) << name;
    const int64_t all = state_bytes(OptimizerKind::AdamW, spec, c10::ScalarType::Float);
    EXPECT_EQ(all - matrix_state(spec), 8 * (2 * spec.layers + 1) * spec.hidden) << name;
  }
}

TEST(ModelSpec, EmbeddingIsOneMatrix) {
  const auto spec = named_spec("embedding");
  ASSERT_EQ(spec.parameters.size(), 1u);
  EXPECT_EQ(spec.numel(), int64_t{500000} * 4096);
}

TEST(ModelSpec, TensorsAreTenThousandOf64KiB) {
  const auto spec = named_spec("tensors");
  ASSERT_EQ(spec.parameters.size(), 10000u);
  for (const auto& parameter : spec.parameters) {
    ASSERT_EQ(parameter.numel() * 4, 64 * 1024) << parameter.name;
  }
}

TEST(ModelSpec, NamesAreUniqueAndSayTheirLayer) {
  const auto spec = decoder_spec("x", 2, 8, 16);
  std::set<std::string> names;
  int64_t in_layer_1 = 0;
  for (const auto& parameter : spec.parameters) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    in_layer_1 += parameter.name.rfind("model.layers.1.", 0) == 0;
  }
  EXPECT_EQ(in_layer_1, 9);
  EXPECT_EQ(names.count("model.layers.0.self_attn.q_proj.weight"), 1u);
  EXPECT_EQ(spec.numel(), 2 * (16 * 8 * 8 + 2 * 8) + 2 * 16 * 8 + 8);
}

TEST(ModelSpec, RefusesWhatHasNoShape) {
  EXPECT_THROW(decoder_spec("x", 0, 8, 16), c10::Error);
  EXPECT_THROW(decoder_spec("x", 1, -8, 16), c10::Error);
  EXPECT_THROW(named_spec("huge"), c10::Error);
}

TEST(StateBytes, FollowsOptimizerAndType) {
  const auto spec = decoder_spec("x", 1, 8, 16);
  const int64_t all = spec.numel();
  const int64_t matrices = 16 * 8 * 8;
  EXPECT_EQ(state_bytes(OptimizerKind::AdamW, spec, c10::ScalarType::Float), 8 * all);
  EXPECT_EQ(state_bytes(OptimizerKind::AdamW, spec, c10::ScalarType::BFloat16), 4 * all);
  EXPECT_EQ(state_bytes(OptimizerKind::SGD, spec, c10::ScalarType::Float), 4 * all);
  EXPECT_EQ(state_bytes(OptimizerKind::Muon, spec, c10::ScalarType::Float),
            4 * matrices + 8 * (all - matrices));
}

}  // namespace
}  // namespace optim_offload::bench
