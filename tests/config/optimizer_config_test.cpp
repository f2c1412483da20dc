#include <gtest/gtest.h>

#include "config/optimizer_config_reader.h"
#include "optim_offload/config.h"
#include "support/error_text.h"

namespace optim_offload {
namespace {

namespace optim = torch::optim;

OptimizerConfig parse(const std::string& text) { return parse_optimizer_config(text, "f.toml"); }

template <typename Options>
Options hyper(const std::string& text) {
  return std::get<Options>(parse("[trainer.optim]\n" + text).hyper_parameters);
}

TEST(OptimizerConfig, DefaultsToAPlainAdamW) {
  const auto config = parse("");
  EXPECT_EQ(config.type, "adamw");
  EXPECT_FALSE(config.offload.has_value());
  EXPECT_TRUE(std::get<optim::AdamWOptions>(config.hyper_parameters) == optim::AdamWOptions());
}

TEST(OptimizerConfig, ReadsTheHyperParametersOfEachType) {
  EXPECT_TRUE(hyper<optim::SGDOptions>("type = 'sgd'\nlr = 0.5\nmomentum = 0.9\nweight_decay = "
                                       "0.1\nnesterov = true") ==
              optim::SGDOptions(0.5).momentum(0.9).weight_decay(0.1).nesterov(true));
  EXPECT_TRUE(hyper<optim::SGDOptions>("type = 'sgd'\nlr = 1\nmomentum = 1\ndampening = 0.5") ==
              optim::SGDOptions(1).momentum(1).dampening(0.5));
  const std::string adam =
      "lr = 0.5\nbetas = [0.5, 0.75]\neps = 1e-4\nweight_decay = 0.1\namsgrad = true\n";
  EXPECT_TRUE(hyper<optim::AdamOptions>("type = 'adam'\n" + adam) ==
              optim::AdamOptions(0.5)
                  .betas(std::make_tuple(0.5, 0.75))
                  .eps(1e-4)
                  .weight_decay(0.1)
                  .amsgrad(true));
  for (const std::string type : {"adamw", "fused_adamw"}) {
    EXPECT_TRUE(hyper<optim::AdamWOptions>("type = '" + type + "'\n" + adam) ==
                optim::AdamWOptions(0.5)
                    .betas(std::make_tuple(0.5, 0.75))
                    .eps(1e-4)
                    .weight_decay(0.1)
                    .amsgrad(true));
  }
  EXPECT_TRUE(
      hyper<optim::RMSpropOptions>("type = 'rmsprop'\nlr = 0.5\nalpha = 0.25\neps = 1e-4\n"
                                   "weight_decay = 0.1\nmomentum = 0.9\ncentered = true") ==
      optim::RMSpropOptions(0.5).alpha(0.25).eps(1e-4).weight_decay(0.1).momentum(0.9).centered(
          true));
  EXPECT_TRUE(
      hyper<optim::AdagradOptions>("type = 'adagrad'\nlr = 0.5\nlr_decay = 0.25\neps = 1e-4\n"
                                   "weight_decay = 0.1\ninitial_accumulator_value = 2") ==
      optim::AdagradOptions(0.5)
          .lr_decay(0.25)
          .eps(1e-4)
          .weight_decay(0.1)
          .initial_accumulator_value(2));
  EXPECT_TRUE(hyper<optim::LBFGSOptions>(
                  "type = 'lbfgs'\nlr = 0.5\nmax_iter = 8\nmax_eval = 9\ntolerance_grad = 1\n"
                  "tolerance_change = 2\nhistory_size = 5\nline_search_fn = 'strong_wolfe'") ==
              optim::LBFGSOptions(0.5)
                  .max_iter(8)
                  .max_eval(9)
                  .tolerance_grad(1)
                  .tolerance_change(2)
                  .history_size(5)
                  .line_search_fn("strong_wolfe"));
}

TEST(OptimizerConfig, ReadsMuonAndItsAdamW) {
  const auto config = parse(
      "[trainer.optim]\ntype = 'muon'\nlr = 0.02\nweight_decay = 0.2\nmomentum = 0.9\n"
      "nesterov = false\nns_coefficients = [1, 2.5, 3]\neps = 1e-4\nns_steps = 7\n"
      "adjust_lr_fn = 'match_rms_adamw'\nadamw_lr = 0.003\nadamw_betas = [0.5, 0.75]\n"
      "adamw_eps = 1e-5\n");
  EXPECT_DOUBLE_EQ(config.lr(), 0.02);
  EXPECT_TRUE(std::get<MuonOptions>(config.hyper_parameters) ==
              MuonOptions(0.02)
                  .weight_decay(0.2)
                  .momentum(0.9)
                  .nesterov(false)
                  .ns_coefficients({1, 2.5, 3})
                  .eps(1e-4)
                  .ns_steps(7)
                  .adjust_lr_fn("match_rms_adamw"));
  EXPECT_TRUE(
      config.muon_adamw ==
      MuonOptions(0.003).adamw(true).weight_decay(0.2).adamw_betas({0.5, 0.75}).adamw_eps(1e-5));
}

TEST(OptimizerConfig, ReadsTheOffloadOptions) {
  const auto config = parse(
      "[trainer.model]\nhidden = 64\noptim_cpu_offload = true\noptim_cpu_offload_chunked = true\n"
      "optim_cpu_offload_stream = true\noptim_cpu_offload_pin_memory = 'required'\n"
      "optim_cpu_offload_piece_mib = 0.5\noptim_cpu_offload_slots = 4\n"
      "optim_cpu_offload_verify = 7\n"
      "optim_cpu_offload_layer_pattern = 'blocks\\.(\\d+)'\n");
  ASSERT_TRUE(config.offload.has_value());
  EXPECT_TRUE(config.offload->chunked());
  EXPECT_TRUE(config.offload->stream());
  EXPECT_EQ(config.offload->pin_memory(), PinMemory::Required);
  EXPECT_EQ(config.offload->piece_bytes(), 512 * 1024);
  EXPECT_EQ(config.offload->slots(), 4);
  EXPECT_EQ(config.offload->verify(), 7);
  EXPECT_EQ(config.offload->layer_pattern(), R"(blocks\.(\d+))");
  const auto off = parse(
      "[trainer.model]\noptim_cpu_offload = true\noptim_cpu_offload_pin_memory = false\n"
      "optim_cpu_offload_piece_mib = 16\n");
  EXPECT_EQ(off.offload->pin_memory(), PinMemory::Off);
  EXPECT_EQ(off.offload->piece_bytes(), 16 << 20);
  EXPECT_FALSE(off.offload->chunked());
  EXPECT_EQ(off.offload->verify(), 0);
  // Left in the file while offload is off, they do no harm.
  EXPECT_FALSE(parse("[trainer.model]\noptim_cpu_offload_slots = 4\n").offload.has_value());
}

TEST(OptimizerConfig, FlagsThatDependOnOthersSayWhatToSet) {
  EXPECT_EQ(error_text([] { parse("[trainer.model]\noptim_cpu_offload_chunked = true\n"); }),
            "[optim_offload] f.toml:2: trainer.model.optim_cpu_offload_chunked = true needs "
            "optim_cpu_offload, which is false; set optim_cpu_offload = true, or this to false");
  EXPECT_EQ(error_text([] {
              parse("[trainer.model]\noptim_cpu_offload = true\noptim_cpu_offload_stream = true\n");
            }),
            "[optim_offload] f.toml:3: trainer.model.optim_cpu_offload_stream = true needs "
            "optim_cpu_offload_chunked, which is false; set optim_cpu_offload_chunked = true, or "
            "this to false");
  EXPECT_HAS(error_text([] { parse("[trainer.model]\noptim_cpu_offload_stream = true\n"); }),
             "optim_cpu_offload_stream = true needs");
}

TEST(OptimizerConfig, LbfgsGoesWithAllAtOnceOnly) {
  const std::string lbfgs = "[trainer.optim]\ntype = 'lbfgs'\n[trainer.model]\n";
  EXPECT_TRUE(parse(lbfgs + "optim_cpu_offload = true\n").offload.has_value());
  EXPECT_HAS(error_text([&] {
               parse(lbfgs + "optim_cpu_offload = true\noptim_cpu_offload_chunked = true\n");
             }),
             "f.toml:5: trainer.model.optim_cpu_offload_chunked = true does not go with");
  EXPECT_HAS(error_text([&] {
               parse(lbfgs + "optim_cpu_offload = true\noptim_cpu_offload_verify = 1\n");
             }),
             "f.toml:5: trainer.model.optim_cpu_offload_verify = 1 does not go with");
}

TEST(OptimizerConfig, RejectsUnknownKeys) {
  EXPECT_HAS(error_text([] { parse("[trainer.model]\noptim_cpu_ofload = true\n"); }),
             "f.toml:2: unknown key trainer.model.optim_cpu_ofload = true; did you mean "
             "\"optim_cpu_offload\"?");
  EXPECT_HAS(error_text([] { parse("[trainer.optim]\ntype = 'sgd'\nbetas = [0.9, 0.99]\n"); }),
             "f.toml:3: unknown key trainer.optim.betas = [0.9, 0.99] (for type = \"sgd\"); valid "
             "keys are \"dampening\", \"lr\", \"momentum\", \"nesterov\", \"type\", "
             "\"weight_decay\"");
}

struct Bad {
  std::string text;
  const char* message;
};

TEST(OptimizerConfig, NamesWhatIsOutOfRange) {
  for (const Bad& bad : {
           Bad{"[trainer.optim]\nlr = -1\n",
               "f.toml:2: trainer.optim.lr = -1 must be from 0 to 1000000"},
           // LibTorch's step() would throw: it is no float.
           Bad{"[trainer.optim]\nlr = 1e42\n", "lr = 1e+42 must be from 0 to 1000000"},
           Bad{"[trainer.optim]\ntype = 'lbfgs'\nmax_iter = 2000000000\n",
               "must be from 1 to 1000000000"},
           Bad{"[trainer.optim]\nlr = nan\n", "trainer.optim.lr = nan is not finite"},
           Bad{"[trainer.optim]\nbetas = [0.9, 1]\n",
               "trainer.optim.betas[1] = 1 must be at least"},
           Bad{"[trainer.optim]\nbetas = 0.9\n", "must be an array of 2 numbers"},
           Bad{"[trainer.optim]\neps = '1e-8'\n", "eps = \"1e-8\" is a string; must be a number"},
           Bad{"[trainer.optim]\ntype = 'lion'\n", "must be one of \"sgd\", \"adam\", \"adamw\""},
           Bad{"[trainer.optim]\ntype = 'sgd'\nnesterov = true\n", "needs momentum above 0"},
           Bad{"[trainer.optim]\ntype = 'muon'\nns_steps = 100\n", "must be from 0 to 99"},
           Bad{"[trainer.optim]\ntype = 'muon'\nadjust_lr_fn = 'no'\n", "\"match_rms_adamw\""},
           Bad{"[trainer.model]\noptim_cpu_offload = 1\n", "must be true or false"},
           Bad{"[trainer.model]\noptim_cpu_offload_pin_memory = 'yes'\n",
               "optim_cpu_offload_pin_memory = \"yes\" must be true, false or \"required\""},
           Bad{"[trainer.model]\noptim_cpu_offload_piece_mib = 0\n", "piece_mib = 0 must be from"},
           Bad{"[trainer.model]\noptim_cpu_offload_slots = 1\n", "slots = 1 must be from 2 to 64"},
           Bad{"[trainer.model]\noptim_cpu_offload_slots = 2.5\n", "2.5 is a float"},
           Bad{"[trainer.model]\noptim_cpu_offload_verify = -1\n",
               "verify = -1 must be at least 0"},
           Bad{"[trainer.model]\noptim_cpu_offload_layer_pattern = '('\n",
               "is no ECMAScript regular expression"},
           Bad{"[trainer.model]\noptim_cpu_offload_layer_pattern = 'layers'\n", "has no group"},
           // The standard library would run out of stack.
           Bad{"[trainer.model]\noptim_cpu_offload_layer_pattern = '" + std::string(90000, 'a') +
                   "(b)'\n",
               "is too long"},
           Bad{"[trainer]\nmodel = 3\n",
               "f.toml:2: trainer.model = 3 is an integer; must be a table"},
       }) {
    EXPECT_HAS(error_text([&] { parse(bad.text); }), bad.message);
  }
}

TEST(OptimizerConfig, LeavesOtherSectionsToOthers) {
  const std::string text =
      "[trainer.model]\nlayers = 4\n[trainer.data]\npath = 'x'\n[own]\nk = 1\n";
  EXPECT_NO_THROW(parse(text));
  // On a document that is shared, what was read here is known, and the rest is not.
  const auto document = TomlDocument::parse(text, "f.toml");
  read_optimizer_config(document);
  EXPECT_HAS(error_text([&] { document.reject_unknown_keys(); }), "unknown key own");
  EXPECT_HAS(error_text([] { load_optimizer_config("/nowhere.toml"); }), "no settings file");
}

}  // namespace
}  // namespace optim_offload
