#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "optim_offload/config.h"
#include "train/data/piece_sampler.h"
#include "train/model/model_config.h"
#include "train/schedule.h"

namespace optim_offload::train {

/// `[trainer.data]`: the text, and the pieces that are cut from it.
struct DataConfig {
  std::vector<std::filesystem::path> files;  ///< UTF-8; relative to the working directory.
  PieceLengths lengths;                      ///< min_bytes, max_bytes.
  int64_t block_bytes = 2048;                ///< The text is split in blocks of this size,
  double held_out = 0.1;                     ///< of which this part is not trained on.
  int64_t held_out_pieces = 256;             ///< Pieces for the accuracies.
  int64_t eval_batch_size = 256;             ///< Pieces decoded at once.
};

/// `[trainer.ckpt]`.
struct CheckpointConfig {
  std::filesystem::path dir;  ///< Empty: no checkpoints.
  int64_t every = 0;          ///< Steps from one to the next; 0: at the end and on signals only.
  int64_t keep = 3;           ///< Newest checkpoints that stay.
  bool overwrite = false;     ///< A fresh run may push out the checkpoints of an earlier one.
};

/// A whole config file of offload-train.
struct TrainConfig {
  int64_t batch_size = 64;  ///< Pieces in a micro-batch.
  int64_t grad_accum =
      1;  ///< Micro-batches in a step; the loss is the mean over all their targets.
  double grad_clip = 1.0;         ///< Largest 2-norm of all gradients; 0: no clipping.
  uint64_t seed = 0;              ///< Of weights and pieces.
  int64_t log_every = 20;         ///< Steps between reports.
  int64_t eval_every = 0;         ///< Steps between accuracies; 0: at the end only.
  std::string device = "auto";    ///< "auto" (CUDA where there is one), "cpu", "cuda", "cuda:N".
  std::string dtype = "float32";  ///< Of weights and gradients: "float32" or "bfloat16".
  bool deterministic = true;      ///< Same bits in every run, on the same device and build.
  bool tf32 = false;              ///< fp32 products on CUDA with 10 bits of mantissa, faster.
  int64_t threads = 0;            ///< Of CPU operators; 0: torch's choice.
  std::filesystem::path metrics;  ///< JSON lines; empty: none.
  ScheduleConfig schedule;
  ModelConfig model;
  DataConfig data;
  CheckpointConfig ckpt;
  OptimizerConfig optimizer;
};

/// Reads a config file after applying `overrides` (`trainer.steps=100`). Throws `c10::Error` that
/// names file, line, key, value and what is valid.
TrainConfig load_train_config(const std::filesystem::path& path,
                              const std::vector<std::string>& overrides = {});

/// The device that `name` means. Throws where it is not there.
torch::Device resolve_device(const std::string& name);

}  // namespace optim_offload::train
