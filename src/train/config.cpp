#include "train/config.h"

#include <regex>

#include <c10/util/Exception.h>
#include <torch/cuda.h>

#include "config/optimizer_config_reader.h"
#include "config/toml_table.h"
#include "train/data/reverse_task.h"

namespace optim_offload::train {
namespace {

// Beyond any sensible run, and far from overflow in products.
constexpr int64_t kMany = int64_t{1} << 40;
constexpr int64_t kSize = int64_t{1} << 24;

int64_t cuda_device_count() {
  // Asking a build without CUDA, or a machine without a driver, for its count throws.
  return torch::cuda::is_available() ? static_cast<int64_t>(torch::cuda::device_count()) : 0;
}

/// Why `name` cannot be used, and what to do; empty where it can.
std::string device_fault(const std::string& name) {
  static const std::regex form(R"(auto|cpu|cuda(?::(\d{1,2}))?)");
  std::smatch match;
  if (!std::regex_match(name, match, form)) {
    return "is no device; must be \"auto\", \"cpu\", \"cuda\" or \"cuda:N\"";
  }
  const int64_t index = match[1].matched ? std::stoll(match[1]) : 0;
  if (name.rfind("cuda", 0) == 0 && index >= cuda_device_count()) {
    return "is not there (CUDA devices seen: " + std::to_string(cuda_device_count()) +
           "); choose \"cpu\" or \"auto\"";
  }
  return {};
}

void read_model(TomlTable table, TrainConfig& config) {
  auto& m = config.model;
  m.dim = table.get_int("dim", m.dim, between<int64_t>(1, kSize));
  m.layers = table.get_int("layers", m.layers, between<int64_t>(1, 100000));
  m.heads = table.get_int("heads", m.heads, between<int64_t>(1, kSize));
  m.kv_heads = table.get_int("kv_heads", m.heads, between<int64_t>(1, kSize));
  m.head_dim = table.get_int("head_dim", m.head_dim, between<int64_t>(2, 65536));
  m.ffn_dim = table.get_int("ffn_dim", m.ffn_dim, between<int64_t>(1, kSize));
  m.rope_theta = table.get_float("rope_theta", m.rope_theta, above(1.0));
  m.norm_eps = table.get_float("norm_eps", m.norm_eps, above(0.0));
  m.init_std = table.get_float("init_std", m.init_std, above(0.0));
  m.tied = table.get_bool("tied", m.tied);
  config.dtype = table.get_string("dtype", config.dtype, {"float32", "bfloat16"});
  if (m.heads % m.kv_heads != 0) {
    table.fail("kv_heads",
               "does not divide heads = " + std::to_string(m.heads) + "; set a divisor of it");
  }
  if (m.head_dim % 2 != 0) table.fail("head_dim", "is odd, and RoPE turns pairs; set an even one");
}

void read_data(TomlTable table, DataConfig& d) {
  table.get_string("task", "reverse", {"reverse"});
  const auto files = table.get_strings("files", {});
  if (files.empty()) table.fail("files", "names no text; list UTF-8 files to train on");
  for (const auto& file : files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
      table.fail("files", "names " + file +
                              ", which is no readable file; name UTF-8 files (Debian's " +
                              "base-files brings /usr/share/common-licenses)");
    }
    d.files.emplace_back(file);
  }
  d.lengths.min = table.get_int("min_bytes", d.lengths.min, between<int64_t>(1, 1 << 20));
  d.lengths.max = table.get_int("max_bytes", d.lengths.max, between<int64_t>(1, 1 << 20));
  if (d.lengths.min > d.lengths.max) {
    table.fail("min_bytes", "is above max_bytes = " + std::to_string(d.lengths.max) +
                                "; set it to at most that");
  }
  d.block_bytes = table.get_int("block_bytes", d.block_bytes, between<int64_t>(1, kMany));
  if (d.block_bytes < d.lengths.max) {
    table.fail("block_bytes", "is below max_bytes = " + std::to_string(d.lengths.max) +
                                  "; set it to at least that");
  }
  d.held_out = table.get_float("held_out", d.held_out, between(0.001, 0.5));
  d.held_out_pieces =
      table.get_int("held_out_pieces", d.held_out_pieces, between<int64_t>(1, 1 << 20));
  d.eval_batch_size =
      table.get_int("eval_batch_size", d.eval_batch_size, between<int64_t>(1, 1 << 20));
}

void read_checkpoints(TomlTable table, CheckpointConfig& c) {
  c.dir = table.get_string("dir", "");
  c.every = table.get_int("every", c.every, between<int64_t>(0, kMany));
  c.keep = table.get_int("keep", c.keep, between<int64_t>(1, 1 << 20));
  c.overwrite = table.get_bool("overwrite", c.overwrite);
  if (c.every > 0 && c.dir.empty()) {
    table.fail("every", "needs a place for checkpoints; set trainer.ckpt.dir too");
  }
}

void read_run(TomlTable table, TrainConfig& config) {
  auto& s = config.schedule;
  s.steps = table.require_int("steps", between<int64_t>(1, kMany));
  s.warmup_steps = table.get_int("warmup_steps", s.warmup_steps, between<int64_t>(0, kMany));
  s.kind = table.get_string("schedule", s.kind, {"cosine", "constant"});
  s.min_lr_ratio = table.get_float("min_lr_ratio", s.min_lr_ratio, between(0.0, 1.0));
  if (s.warmup_steps > s.steps) {
    table.fail("warmup_steps",
               "is above steps = " + std::to_string(s.steps) + "; set it to at most that");
  }
  config.batch_size = table.get_int("batch_size", config.batch_size, between<int64_t>(1, 1 << 20));
  config.grad_accum = table.get_int("grad_accum", config.grad_accum, between<int64_t>(1, 1 << 20));
  config.grad_clip = table.get_float("grad_clip", config.grad_clip, at_least(0.0));
  config.seed = static_cast<uint64_t>(table.get_int("seed", 0, at_least<int64_t>(0)));
  config.log_every = table.get_int("log_every", config.log_every, between<int64_t>(1, kMany));
  config.eval_every = table.get_int("eval_every", config.eval_every, between<int64_t>(0, kMany));
  config.device = table.get_string("device", config.device);
  config.deterministic = table.get_bool("deterministic", config.deterministic);
  config.tf32 = table.get_bool("tf32", config.tf32);
  config.threads = table.get_int("threads", config.threads, between<int64_t>(0, 4096));
  config.metrics = table.get_string("metrics", "");
  if (const auto fault = device_fault(config.device); !fault.empty()) table.fail("device", fault);
}

}  // namespace

TrainConfig load_train_config(const std::filesystem::path& path,
                              const std::vector<std::string>& overrides) {
  auto document = TomlDocument::load(path);
  for (const auto& assignment : overrides) document.apply_override(assignment);

  TrainConfig config;
  config.optimizer = read_optimizer_config(document);
  if (config.optimizer.type == "lbfgs") {
    document.table("trainer.optim")
        .fail("type", "needs a closure that is called many times a step, which this trainer does " +
                          std::string("not give; choose another type"));
  }
  read_run(document.table("trainer"), config);
  read_model(document.table("trainer.model"), config);
  read_data(document.table("trainer.data"), config.data);
  read_checkpoints(document.table("trainer.ckpt"), config.ckpt);
  document.reject_unknown_keys();

  config.model.vocab_size = kVocabSize;
  config.model.max_positions = sequence_length(config.data.lengths.max);
  return config;
}

torch::Device resolve_device(const std::string& name) {
  const auto fault = device_fault(name);
  TORCH_CHECK(fault.empty(), "[optim_offload] the device ", name, " ", fault);
  if (name == "auto") {
    return cuda_device_count() > 0 ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
  }
  return name == "cuda" ? torch::Device(torch::kCUDA, 0) : torch::Device(name);
}

}  // namespace optim_offload::train
