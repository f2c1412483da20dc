#include <gtest/gtest.h>

#include "optim_offload/config.h"
#include "optim_offload/cpu_offload_optimizer.h"
#include "optim_offload/optimizers/fused_adamw.h"
#include "optimizers/optimizer_kit.h"
#include "support/error_text.h"

namespace optim_offload {
namespace {

namespace optim = torch::optim;

torch::OrderedDict<std::string, torch::Tensor> model() {
  torch::OrderedDict<std::string, torch::Tensor> named;
  named.insert("model.embed_tokens.weight", parameter({8, 4}, 1));
  named.insert("model.layers.0.q_proj.weight", parameter({4, 4}, 2));
  named.insert("model.layers.1.q_proj.weight", parameter({4, 6}, 3));
  named.insert("model.norm.weight", parameter({4}, 4));
  named.insert("frozen.weight", numbers({4}, 5));
  named.insert("lm_head.weight", named["model.embed_tokens.weight"]);
  return named;
}

std::string config_text(const std::string& type, const std::string& model_keys) {
  std::string text = "[trainer.optim]\ntype = '" + type + "'\nlr = 0.05\n";
  if (type == "sgd") text += "momentum = 0.9\n";
  return text + "[trainer.model]\n" + model_keys;
}

const char* const kTypes[] = {"sgd",     "adam",    "adamw", "fused_adamw",
                              "rmsprop", "adagrad", "muon",  "lbfgs"};
const char* const kOffload = "optim_cpu_offload = true\n";
const char* const kStreamed =
    "optim_cpu_offload = true\noptim_cpu_offload_chunked = true\n"
    "optim_cpu_offload_stream = true\noptim_cpu_offload_piece_mib = 0.001\n";

TEST(MakeOptimizer, MakesTheClassThatTheTypeNames) {
  const auto named = model();
  const auto is = [&](const char* type, const std::type_info& expected) {
    const auto optimizer = make_optimizer(parse_optimizer_config(config_text(type, "")), named);
    EXPECT_EQ(typeid(*optimizer), expected) << type;
    EXPECT_DOUBLE_EQ(optimizer->param_groups()[0].options().get_lr(), 0.05);
    size_t count = 0;
    for (const auto& group : optimizer->param_groups()) count += group.params().size();
    EXPECT_EQ(count, 4u) << type;  // Tied once, frozen never.
  };
  is("sgd", typeid(optim::SGD));
  is("adam", typeid(optim::Adam));
  is("adamw", typeid(optim::AdamW));
  is("fused_adamw", typeid(FusedAdamW));
  is("rmsprop", typeid(optim::RMSprop));
  is("adagrad", typeid(optim::Adagrad));
  is("muon", typeid(Muon));
  is("lbfgs", typeid(optim::LBFGS));
}

void train(optim::Optimizer& optimizer,
           const torch::OrderedDict<std::string, torch::Tensor>& named) {
  for (int step = 0; step < 3; ++step) {
    optimizer.step([&] {
      optimizer.zero_grad();
      torch::Tensor loss = torch::zeros({});
      for (const auto& item : named) loss = loss + item.value().square().sum();
      loss.backward();
      return loss;
    });
  }
}

TEST(MakeOptimizer, WrapsWhereTheConfigSaysSoWithTheSameResults) {
  for (const std::string type : kTypes) {
    for (const std::string keys : {kOffload, kStreamed}) {
      if (type == "lbfgs" && keys == kStreamed) continue;  // Refused, see below.
      SCOPED_TRACE(type + " " + keys);
      const auto plain_model = model();
      const auto wrapped_model = model();
      const auto plain = make_optimizer(parse_optimizer_config(config_text(type, "")), plain_model);
      const auto wrapped =
          make_optimizer(parse_optimizer_config(config_text(type, keys)), wrapped_model);
      auto* offload = dynamic_cast<CPUOffloadOptimizer*>(wrapped.get());
      ASSERT_NE(offload, nullptr);
      EXPECT_EQ(offload->options().stream(), keys == kStreamed);
      train(*plain, plain_model);
      train(*wrapped, wrapped_model);
      for (const auto& item : plain_model) {
        EXPECT_TRUE(same_bits(wrapped_model[item.key()], item.value())) << item.key();
      }
    }
  }
}

TEST(MakeOptimizer, SaysWhenThereIsNothingToTrain) {
  torch::OrderedDict<std::string, torch::Tensor> frozen;
  frozen.insert("w", numbers({4}, 1));
  EXPECT_HAS(error_text([&] { make_optimizer(OptimizerConfig(), frozen); }),
             "none of the 1 named parameters requires a gradient");
}

TEST(MakeOptimizer, ChecksAConfigMadeByHand) {
  OptimizerConfig config;
  config.type = "sgd";
  EXPECT_HAS(error_text([&] { make_optimizer(config, model()); }), "not those of type \"sgd\"");
  config.type = "lion";
  EXPECT_HAS(error_text([&] { make_optimizer(config, model()); }), "no optimizer type \"lion\"");
}

}  // namespace
}  // namespace optim_offload
