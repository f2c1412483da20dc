#include "bench/options.h"

#include <utility>

#include <c10/util/Exception.h>

namespace optim_offload::bench {

namespace {

template <typename T>
using Names = std::vector<std::pair<const char*, T>>;

const Names<Mode>& mode_names() {
  static const Names<Mode> names = {{"resident", Mode::Resident},
                                    {"all-at-once", Mode::AllAtOnce},
                                    {"sequential", Mode::Sequential},
                                    {"streamed", Mode::Streamed}};
  return names;
}

const Names<OptimizerKind>& optimizer_names() {
  static const Names<OptimizerKind> names = {{"AdamW", OptimizerKind::AdamW},
                                             {"FusedAdamW", OptimizerKind::FusedAdamW},
                                             {"SGD", OptimizerKind::SGD},
                                             {"Muon", OptimizerKind::Muon}};
  return names;
}

template <typename T>
T parse(const char* what, const std::string& text, const Names<T>& names) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    known += known.empty() ? name : std::string(", ") + name;
  }
  TORCH_CHECK(false, "[optim_offload] no ", what, " is called '", text, "'; known: ", known);
}

template <typename T>
const char* name_of(T value, const Names<T>& names) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return name;
  }
  return "unknown";
}

}  // namespace

const char* to_string(Mode mode) { return name_of(mode, mode_names()); }
const char* to_string(OptimizerKind kind) { return name_of(kind, optimizer_names()); }

Mode parse_mode(const std::string& name) { return parse("mode", name, mode_names()); }

OptimizerKind parse_optimizer(const std::string& name) {
  return parse("optimizer", name, optimizer_names());
}

c10::ScalarType parse_dtype(const std::string& name) {
  return parse<c10::ScalarType>(
      "dtype", name, {{"fp32", c10::ScalarType::Float}, {"bf16", c10::ScalarType::BFloat16}});
}

PinMemory parse_pin(const std::string& name) {
  return parse<PinMemory>("way of pinning", name,
                          {{"off", PinMemory::Off},
                           {"preferred", PinMemory::Preferred},
                           {"required", PinMemory::Required}});
}

OffloadOptions BenchOptions::offload(Mode mode, int64_t piece_bytes) const {
  TORCH_CHECK(mode != Mode::Resident,
              "[optim_offload] the resident mode is the plain optimizer and has no options");
  return OffloadOptions()
      .chunked(mode != Mode::AllAtOnce)
      .stream(mode == Mode::Streamed)
      .pin_memory(pin)
      .piece_bytes(piece_bytes)
      .slots(slots);
}

}  // namespace optim_offload::bench
