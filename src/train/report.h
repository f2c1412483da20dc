#pragma once

#include <string>

#include <torch/optim/optimizer.h>
#include <nlohmann/json.hpp>

#include "optim_offload/stats.h"
#include "train/config.h"
#include "train/data/text_corpus.h"
#include "train/evaluate.h"
#include "train/model/transformer.h"

/// The sentences of a run, apart from what it does.
namespace optim_offload::train {

/// What is about to be trained: model, device, optimizer with its mode, text.
std::string describe_run(const TrainConfig& config, const CausalLM& model,
                         const torch::optim::Optimizer& optimizer, const TextCorpus& corpus);

/// "exact match 98.4 % (252 of 256 pieces), characters 99.91 % (4096 of 4100)".
std::string describe_accuracy(const Accuracy& accuracy);

/// A piece and what the model makes of it.
std::string describe_example(const CausalLM& model, const std::string& piece);

/// The latest step's copies and the memory that holds the state.
std::string describe_stats(const OffloadStats& stats);
nlohmann::json stats_to_json(const OffloadStats& stats);

}  // namespace optim_offload::train
