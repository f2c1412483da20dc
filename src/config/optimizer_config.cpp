#include <c10/util/Exception.h>

#include <cmath>
#include <regex>

#include "config/hyper_parameters.h"
#include "config/optimizer_config_reader.h"
#include "optim_offload/config.h"
#include "option_limits.h"
#include "plan/chunk.h"

namespace optim_offload {
namespace {

constexpr const char* kPrefix = "optim_";
constexpr const char* kOffload = "optim_cpu_offload";
constexpr const char* kChunked = "optim_cpu_offload_chunked";
constexpr const char* kStream = "optim_cpu_offload_stream";
constexpr const char* kPinMemory = "optim_cpu_offload_pin_memory";
constexpr const char* kPieceMib = "optim_cpu_offload_piece_mib";
constexpr const char* kSlots = "optim_cpu_offload_slots";
constexpr const char* kLayerPattern = "optim_cpu_offload_layer_pattern";
constexpr const char* kVerify = "optim_cpu_offload_verify";

PinMemory read_pin_memory(TomlTable& model) {
  const TomlNode* node = model.find(kPinMemory);
  if (!node) return OffloadOptions().pin_memory();
  if (const auto* flag = std::get_if<bool>(&node->value)) {
    return *flag ? PinMemory::Preferred : PinMemory::Off;
  }
  const auto* word = std::get_if<std::string>(&node->value);
  if (!word || *word != "required") model.fail(kPinMemory, "must be true, false or \"required\"");
  return PinMemory::Required;
}

std::string read_layer_pattern(TomlTable& model) {
  const std::string pattern = model.get_string(kLayerPattern, OffloadOptions().layer_pattern());
  if (pattern.size() > plan::kLongestPattern) {
    model.fail(kLayerPattern, "is too long (" + std::to_string(pattern.size()) +
                                  " characters); give at most " +
                                  std::to_string(plan::kLongestPattern));
  }
  try {
    if (std::regex(pattern).mark_count() < 1) {
      model.fail(kLayerPattern,
                 "has no group that captures the layer's number; write one, as in "
                 "'layers\\.(\\d+)\\.'");
    }
  } catch (const std::regex_error& error) {
    model.fail(kLayerPattern, std::string("is no ECMAScript regular expression (") + error.what() +
                                  "); mend it, and mind that \"...\" needs \\\\ for each \\");
  }
  return pattern;
}

std::optional<OffloadOptions> read_offload(TomlTable model) {
  const bool offload = model.get_bool(kOffload, false);
  const bool chunked = model.get_bool(kChunked, false);
  const bool stream = model.get_bool(kStream, false);
  OffloadOptions options;
  options.chunked(chunked).stream(stream);
  options.pin_memory(read_pin_memory(model));
  constexpr double kMib = 1024.0 * 1024.0;
  const double default_mib = static_cast<double>(options.piece_bytes()) / kMib;
  // Up to 1 TiB: what lies outside is a mistake in the unit.
  const double mib = model.get_float(kPieceMib, default_mib,
                                     between(static_cast<double>(kSmallestPiece) / kMib, kMib));
  options.piece_bytes(std::llround(mib * kMib));
  options.slots(model.get_int(kSlots, options.slots(), between(kFewestSlots, kMostSlots)));
  options.layer_pattern(read_layer_pattern(model));
  options.verify(model.get_int(kVerify, options.verify(), at_least<int64_t>(0)));
  model.reject_unknown_keys(kPrefix);

  if (chunked && !offload) {
    model.fail(kChunked, std::string("needs ") + kOffload + ", which is false; set " + kOffload +
                             " = true, or this to false");
  }
  if (stream && !chunked) {
    model.fail(kStream, std::string("needs ") + kChunked + ", which is false; set " + kChunked +
                            " = true, or this to false");
  }
  // The rest may stay in a file whose offload is switched off, to compare the two.
  if (!offload) return std::nullopt;
  return options;
}

}  // namespace

double OptimizerConfig::lr() const {
  return std::visit([](const auto& options) { return options.lr(); }, hyper_parameters);
}

OptimizerConfig read_optimizer_config(const TomlDocument& document) {
  TomlTable model = document.table("trainer.model");
  OptimizerConfig config;
  config.offload = read_offload(model);
  read_hyper_parameters(document.table("trainer.optim"), config);
  if (config.type == "lbfgs" && config.offload && config.offload->chunked()) {
    model.fail(kChunked,
               "does not go with trainer.optim.type = \"lbfgs\", whose parameters depend on each "
               "other; set it to false (all at once works), or choose another type");
  }
  if (config.type == "lbfgs" && config.offload && config.offload->verify() > 0) {
    model.fail(kVerify,
               "does not go with trainer.optim.type = \"lbfgs\", which evaluates its closure more "
               "than once in a step; set it to 0, or choose another type");
  }
  return config;
}

OptimizerConfig load_optimizer_config(const std::filesystem::path& path) {
  return read_optimizer_config(TomlDocument::load(path));
}

OptimizerConfig parse_optimizer_config(std::string_view text, const std::string& source_name) {
  return read_optimizer_config(TomlDocument::parse(text, source_name));
}

}  // namespace optim_offload
