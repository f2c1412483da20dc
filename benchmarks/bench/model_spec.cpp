#include "bench/model_spec.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

namespace optim_offload::bench {

namespace {

constexpr int64_t kVocab = 32000;

// 64 KiB of fp32.
constexpr int64_t kSmallTensorSide = 128;
constexpr int64_t kSmallTensorLayers = 100;
constexpr int64_t kSmallTensorsPerLayer = 100;

ModelSpec embedding_spec() {
  ModelSpec spec;
  spec.name = "embedding";
  spec.hidden = 4096;
  spec.vocab = 500000;
  spec.parameters.push_back({"model.embed_tokens.weight", spec.vocab, spec.hidden});
  return spec;
}

ModelSpec tensors_spec() {
  ModelSpec spec;
  spec.name = "tensors";
  spec.layers = kSmallTensorLayers;
  spec.hidden = kSmallTensorSide;
  for (int64_t layer = 0; layer < kSmallTensorLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".experts.";
    for (int64_t i = 0; i < kSmallTensorsPerLayer; ++i) {
      spec.parameters.push_back(
          {prefix + std::to_string(i) + ".weight", kSmallTensorSide, kSmallTensorSide});
    }
  }
  return spec;
}

}  // namespace

int64_t ModelSpec::numel() const {
  int64_t sum = 0;
  for (const auto& parameter : parameters) {
    sum += parameter.numel();
  }
  return sum;
}

ModelSpec decoder_spec(const std::string& name, int64_t layers, int64_t hidden, int64_t vocab) {
  TORCH_CHECK(layers > 0 && hidden > 0 && vocab > 0, "[optim_offload] a model of ", layers,
              " layers, hidden ", hidden, ", vocabulary ", vocab,
              " has no shape; give positive --layers, --hidden and --vocab");
  ModelSpec spec{name, layers, hidden, vocab, {}};
  auto& out = spec.parameters;
  out.push_back({"model.embed_tokens.weight", vocab, hidden});
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    out.push_back({prefix + "input_layernorm.weight", hidden, 0});
    for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      out.push_back({prefix + "self_attn." + projection + ".weight", hidden, hidden});
    }
    out.push_back({prefix + "post_attention_layernorm.weight", hidden, 0});
    out.push_back({prefix + "mlp.gate_proj.weight", 4 * hidden, hidden});
    out.push_back({prefix + "mlp.up_proj.weight", 4 * hidden, hidden});
    out.push_back({prefix + "mlp.down_proj.weight", hidden, 4 * hidden});
  }
  out.push_back({"model.norm.weight", hidden, 0});
  out.push_back({"lm_head.weight", vocab, hidden});
  return spec;
}

ModelSpec named_spec(const std::string& name) {
  if (name == "small") return decoder_spec(name, 14, 768, kVocab);
  if (name == "medium") return decoder_spec(name, 28, 1024, kVocab);
  if (name == "large") return decoder_spec(name, 40, 2560, kVocab);
  if (name == "embedding") return embedding_spec();
  if (name == "tensors") return tensors_spec();
  TORCH_CHECK(false, "[optim_offload] no model is called '", name,
              "'; known: ", c10::Join(", ", spec_names()));
}

const std::vector<std::string>& spec_names() {
  static const std::vector<std::string> names = {"small", "medium", "large", "embedding",
                                                 "tensors"};
  return names;
}

}  // namespace optim_offload::bench
