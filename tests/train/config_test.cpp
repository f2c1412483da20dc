#include "train/config.h"

#include <torch/cuda.h>

#include "train/support.h"

namespace optim_offload::train {
namespace {

/// test.toml with one change; the error that it gives.
std::string error_with(const std::string& override_) {
  const TempDir dir;
  return error_of([&] { small_config(dir, {override_}); });
}

TEST(TrainConfig, ReadsTheFile) {
  const TempDir dir;
  const auto config = small_config(dir);
  EXPECT_EQ(config.schedule.steps, 6);
  EXPECT_EQ(config.grad_accum, 2);
  EXPECT_EQ(config.model.dim, 32);
  EXPECT_EQ(config.model.kv_heads, 2);
  EXPECT_EQ(config.model.vocab_size, 259);
  EXPECT_EQ(config.model.max_positions, 26);  // begin + 12 + separator + 12
  EXPECT_EQ(config.data.lengths.max, 12);
  EXPECT_EQ(config.optimizer.type, "adamw");
  EXPECT_DOUBLE_EQ(config.optimizer.lr(), 3e-3);
  EXPECT_FALSE(config.optimizer.offload.has_value());
  EXPECT_TRUE(config.ckpt.dir.empty());
}

TEST(TrainConfig, OverridesWin) {
  const TempDir dir;
  const auto config =
      small_config(dir, {"trainer.steps=9", "trainer.optim.lr=0.5", "trainer.model.tied=true",
                         "trainer.model.optim_cpu_offload=true", "trainer.metrics=a/b.jsonl"});
  EXPECT_EQ(config.schedule.steps, 9);
  EXPECT_DOUBLE_EQ(config.optimizer.lr(), 0.5);
  EXPECT_TRUE(config.model.tied);
  EXPECT_TRUE(config.optimizer.offload.has_value());
  EXPECT_EQ(config.metrics, "a/b.jsonl");
}

TEST(TrainConfig, AllShippedConfigsAreValid) {
  for (const auto& entry : std::filesystem::directory_iterator(test_config().parent_path())) {
    if (entry.path().extension() != ".toml") continue;
    const TempDir dir;
    // The text and the GPU need not be on the machine that tests.
    auto overrides = test_overrides(dir, {"trainer.device=cpu"});
    EXPECT_NO_THROW(load_train_config(entry.path(), overrides)) << entry.path();
  }
}

TEST(TrainConfig, UnknownKeysAreErrors) {
  for (const std::string key :
       {"trainer.stepz=1", "trainer.model.width=8", "trainer.data.file=1", "trainer.ckpt.keeps=1",
        "trainer.model.optim_cpu_offload_chunky=true", "trainer.optim.momentum=0.5",
        "trainer.extra=1", "other=1"}) {
    EXPECT_TRUE(contains(error_with(key), key.substr(0, key.find('=')))) << key;
  }
}

TEST(TrainConfig, WrongTypesAreErrors) {
  for (const std::string key :
       {"trainer.steps=1.5", "trainer.steps=true", "trainer.grad_clip=much", "trainer.device=3",
        "trainer.deterministic=1", "trainer.model.dim=[8]", "trainer.data.files=text.txt",
        "trainer.ckpt.dir=7", "trainer.model.tied=0", "trainer.optim.lr=fast"}) {
    EXPECT_TRUE(contains(error_with(key), key.substr(0, key.find('=')))) << key;
  }
}

TEST(TrainConfig, ValuesOutOfRangeAreErrors) {
  for (const std::string key : {"trainer.steps=0",
                                "trainer.batch_size=0",
                                "trainer.grad_accum=-1",
                                "trainer.grad_clip=-0.5",
                                "trainer.log_every=0",
                                "trainer.min_lr_ratio=1.5",
                                "trainer.seed=-1",
                                "trainer.schedule=linear",
                                "trainer.model.layers=0",
                                "trainer.model.head_dim=7",
                                "trainer.model.kv_heads=3",
                                "trainer.model.dtype=float16",
                                "trainer.model.rope_theta=0.5",
                                "trainer.data.min_bytes=0",
                                "trainer.data.held_out=0.9",
                                "trainer.data.files=[]",
                                "trainer.ckpt.keep=0",
                                "trainer.warmup_steps=7",
                                "trainer.data.min_bytes=13",
                                "trainer.data.block_bytes=11",
                                "trainer.ckpt.every=2",
                                "trainer.device=gpu",
                                "trainer.device=cuda:99",
                                "trainer.optim.lr=-1.0"}) {
    EXPECT_TRUE(contains(error_with(key), key.substr(0, key.find('=')))) << key;
  }
}

TEST(TrainConfig, ErrorsNamePlaceKeyValueAndChoices) {
  const TempDir dir;
  write_text(dir / "bad.toml", "[trainer]\nsteps = 5\n\n[trainer.model]\ndtype = \"half\"\n");
  const auto text = error_of([&] { load_train_config(dir / "bad.toml"); });
  EXPECT_TRUE(contains(text, "bad.toml:5: trainer.model.dtype"));
  EXPECT_TRUE(contains(text, "half"));
  EXPECT_TRUE(contains(text, "bfloat16"));
}

TEST(TrainConfig, AMissingTextIsNamed) {
  const auto text = error_with("trainer.data.files=[\"/nowhere/text\"]");
  EXPECT_TRUE(contains(text, "/nowhere/text"));
  EXPECT_TRUE(contains(text, "base-files"));
}

TEST(TrainConfig, StreamWithoutChunkedIsAnError) {
  const TempDir dir;
  const auto text = error_of([&] {
    small_config(dir, {"trainer.model.optim_cpu_offload=true",
                       "trainer.model.optim_cpu_offload_stream=true"});
  });
  EXPECT_TRUE(contains(text, "chunked"));
}

TEST(Device, AutoTakesCudaWhereItIs) {
  EXPECT_EQ(resolve_device("cpu").type(), torch::kCPU);
  EXPECT_EQ(resolve_device("auto").is_cuda(), torch::cuda::is_available());
  if (!torch::cuda::is_available()) {
    EXPECT_TRUE(contains(error_of([] { resolve_device("cuda"); }), "CUDA devices seen: 0"));
  }
}

}  // namespace
}  // namespace optim_offload::train
