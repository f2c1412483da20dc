#include "bench/run.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "bench/check.h"
#include "bench/measure.h"
#include "bench/model.h"
#include "bench/optimizers.h"
#include "memory/host_region.h"

namespace optim_offload::bench {

namespace {

bool wants(const BenchOptions& options, Mode mode) {
  return std::find(options.modes.begin(), options.modes.end(), mode) != options.modes.end();
}

// The limits of two modes contain the plain optimizer's step, so it is measured for them too.
std::vector<Mode> modes_to_measure(const BenchOptions& options) {
  std::vector<Mode> modes = options.modes;
  const bool needed = wants(options, Mode::AllAtOnce) || wants(options, Mode::Sequential);
  if (needed && !wants(options, Mode::Resident)) modes.insert(modes.begin(), Mode::Resident);
  return modes;
}

bool draws(const BenchOptions& options, const ModelSpec& spec, const RunResult& result) {
  if (options.pictures.empty() || !result.spans.empty()) return false;
  return options.timeline_model.empty() || options.timeline_model == spec.name;
}

void check_all(const BenchOptions& options, Device& device) {
  for (const OptimizerKind kind : options.optimizers) {
    for (const Mode mode : options.modes) {
      check_against_plain(mode, kind, options, device);
      if (mode == Mode::Resident) continue;
      std::cerr << "checked: " << to_string(kind) << ", " << to_string(mode)
                << ": same bits as the plain optimizer" << std::endl;
    }
  }
}

// Measures the subject in all modes; rows without limits.
std::vector<Row> measure_modes(Subject subject, const BenchOptions& options, Device& device,
                               RunResult& result) {
  const std::string model_and_optimizer = subject.spec.name + ", " + to_string(subject.kind);
  std::vector<Row> rows;
  for (const Mode mode : modes_to_measure(options)) {
    subject.mode = mode;
    const std::string what = model_and_optimizer + ", " + to_string(mode);
    std::cerr << "measuring: " << what << std::endl;
    const bool draw = mode == Mode::Streamed && draws(options, subject.spec, result);
    try {
      rows.push_back(measure(subject, options, device, draw ? &result.spans : nullptr));
      if (draw && !result.spans.empty()) result.spans_of = model_and_optimizer;
    } catch (const c10::OutOfMemoryError&) {
      result.report.notes.push_back(what + ": does not fit into GPU memory");
    }
  }
  return rows;
}

std::optional<double> resident_seconds(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    if (row.mode == to_string(Mode::Resident)) return row.device_step_s;
  }
  return std::nullopt;
}

void run_model(const ModelSpec& spec, const BenchOptions& options, Device& device,
               RunResult& result) {
  std::vector<std::unique_ptr<LinkProbe>> probes;
  for (const OptimizerKind kind : options.optimizers) {
    const int64_t bytes = state_bytes(kind, spec, options.dtype);
    std::cerr << "measuring: the link, " << (bytes >> 20) << " MiB each way" << std::endl;
    probes.push_back(device.open_link(bytes));
    result.report.links.push_back(
        {spec.name, to_string(kind), measure_link(*probes.back(), options.link_repeats)});
  }
  {
    const auto parameters = make_parameters(spec, options.dtype, device.torch_device(), 1);
    fill_gradients(parameters, 2);
    for (size_t i = 0; i < probes.size(); ++i) {
      auto rows =
          measure_modes({spec, parameters, options.optimizers[i], Mode::Resident, *probes[i]},
                        options, device, result);
      set_limits(rows, resident_seconds(rows));
      for (auto& row : rows) {
        if (wants(options, parse_mode(row.mode))) result.report.rows.push_back(std::move(row));
      }
    }
  }
  device.release_cached();
}

const char* pin_name(PinMemory pin) {
  switch (pin) {
    case PinMemory::Off:
      return "off";
    case PinMemory::Preferred:
      return "preferred";
    case PinMemory::Required:
      return "required";
  }
  return "unknown";
}

/// Has the system find as much host memory as the largest model's state takes, and lets it go. On a
/// virtual machine whose memory grows as it is used, the first touch takes seconds per GiB that no
/// library can save; afterwards the first step measures what this one does.
void find_host_memory(const BenchOptions& options) {
  int64_t most = 0;
  for (const auto& spec : options.models) most = std::max(most, spec.numel());
  const auto bytes = static_cast<size_t>(2 * most) * c10::elementSize(options.dtype);
  const memory::HostRegion region(bytes, memory::LockFor::Simulated, PinMemory::Preferred);
}

}  // namespace

void set_limits(std::vector<Row>& rows, std::optional<double> resident_s) {
  for (auto& row : rows) {
    switch (parse_mode(row.mode)) {
      case Mode::Resident:
        break;
      case Mode::Streamed:
        row.limit_s = row.link.both_s;
        row.limit = "both directions at once";
        break;
      case Mode::AllAtOnce:
      case Mode::Sequential:
        if (!resident_s) break;
        row.limit_s = row.link.h2d_s + *resident_s + row.link.d2h_s;
        row.limit = "up alone + resident step + down alone";
        break;
    }
  }
}

RunResult run(const BenchOptions& options, Device& device) {
  RunResult result;
  Report& report = result.report;
  report.environment = device.environment();
  report.steps = options.steps;
  report.warmup = options.warmup;
  report.piece_mib = options.piece_mib;
  report.slots = options.slots;
  report.pin = pin_name(options.pin);
  check_all(options, device);
  find_host_memory(options);
  for (const auto& spec : options.models) run_model(spec, options, device, result);
  return result;
}

}  // namespace optim_offload::bench
