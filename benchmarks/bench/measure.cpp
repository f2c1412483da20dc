#include "bench/measure.h"

#include <memory>

#include "bench/clock.h"
#include "bench/optimizers.h"
#include "bench/record_timeline.h"
#include "bench/saved_state.h"
#include "optim_offload/cpu_offload_optimizer.h"

namespace optim_offload::bench {

namespace {

// Of state for each parameter, of any optimizer here, and what each is aligned to.
constexpr int64_t kMostTensors = 2;
constexpr int64_t kAlignment = 256;

// The optimizer that is measured; `wrapper` is null where it is the plain one.
struct Measured {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  CPUOffloadOptimizer* wrapper = nullptr;
};

Measured make_measured(const Subject& subject, const BenchOptions& options) {
  auto plain = make_optimizer(subject.kind, subject.parameters);
  if (subject.mode == Mode::Resident) return {std::move(plain), nullptr};
  auto wrapper = std::make_unique<CPUOffloadOptimizer>(std::move(plain), subject.parameters,
                                                       options.offload(subject.mode));
  auto* raw = wrapper.get();
  return {std::move(wrapper), raw};
}

Memory over(const Memory& memory, const Memory& base) {
  return {memory.allocated - base.allocated, memory.reserved - base.reserved};
}

// Wall time from a quiet device to a quiet device: what a training loop waits for.
double timed_step(torch::optim::Optimizer& optimizer, Device& device) {
  device.synchronize();
  const auto start = Clock::now();
  optimizer.step();
  device.synchronize();
  return seconds_since(start);
}

int64_t host_bytes(const CPUOffloadOptimizer* wrapper) {
  if (wrapper == nullptr) return 0;
  const auto stats = wrapper->stats();
  return stats.pinned_bytes + stats.pageable_bytes;
}

// The link's own speed changes from second to second, so it is timed in turn with the steps.
class LinkBesideSteps {
 public:
  LinkBesideSteps(LinkProbe& link, Mode mode) : link_(link), mode_(mode) {}

  void time() {
    if (mode_ == Mode::Resident) return;
    if (mode_ == Mode::Streamed) {
      both_.push_back(link_.seconds(LinkUse::Both));
      return;
    }
    up_.push_back(link_.seconds(LinkUse::Up));
    down_.push_back(link_.seconds(LinkUse::Down));
  }

  LinkTimes medians() const {
    const auto median = [](const std::vector<double>& v) {
      return v.empty() ? 0 : quantile(v, 0.5);
    };
    return {link_.bytes(), median(up_), median(down_), median(both_)};
  }

 private:
  LinkProbe& link_;
  Mode mode_;
  std::vector<double> up_, down_, both_;
};

void time_later_steps(Measured& measured, const Subject& subject, const BenchOptions& options,
                      Device& device, Row& row) {
  for (int64_t i = 0; i < options.warmup; ++i) timed_step(*measured.optimizer, device);
  LinkBesideSteps link(subject.link, subject.mode);
  std::vector<double> wall, on_device, host, queue;
  for (int64_t i = 0; i < options.steps; ++i) {
    link.time();
    if (measured.wrapper == nullptr) {
      const auto start = Clock::now();
      on_device.push_back(device.timed([&] { measured.optimizer->step(); }));
      wall.push_back(seconds_since(start));
      continue;
    }
    wall.push_back(timed_step(*measured.optimizer, device));
    const OffloadStats stats = measured.wrapper->stats();
    host.push_back(stats.host_seconds / wall.back());
    queue.push_back(stats.queue_seconds / wall.back());
  }
  row.step_s = summarize(wall);
  row.link = link.medians();
  if (!on_device.empty()) row.device_step_s = quantile(on_device, 0.5);
  if (!host.empty()) {
    row.host_share = quantile(host, 0.5);
    row.queue_share = quantile(queue, 0.5);
  }
}

void take_stats(const CPUOffloadOptimizer& wrapper, int64_t most_padding, Row& row) {
  const OffloadStats stats = wrapper.stats();
  const int64_t padding = stats.state_bytes - row.state_bytes;
  TORCH_CHECK(padding >= 0 && padding <= most_padding, "[optim_offload] ", row.model, " has ",
              stats.state_bytes, " bytes of state at rest where ", row.state_bytes, " to ",
              row.state_bytes + most_padding,
              " were expected; ratios to the link's limit would be wrong");
  row.h2d_gb_per_s = static_cast<double>(stats.h2d_bytes) * 1e-9 / row.step_s.median;
  row.d2h_gb_per_s = static_cast<double>(stats.d2h_bytes) * 1e-9 / row.step_s.median;
  row.pinned_bytes = stats.pinned_bytes;
  row.pageable_bytes = stats.pageable_bytes;
  row.pinned_over_state = static_cast<double>(stats.pinned_bytes + stats.pageable_bytes) /
                          static_cast<double>(row.state_bytes);
  row.chunks = stats.chunks;
  row.pieces = stats.pieces;
  row.tiles = stats.tiles;
  row.largest_piece_bytes = stats.largest_piece_bytes;
  row.oversize_piece = stats.oversize_piece;
}

void soak(Measured& measured, int64_t steps, Device& device, Row& row) {
  Soak soak;
  soak.steps = steps;
  soak.device_before = device.memory();
  soak.host_before = host_bytes(measured.wrapper);
  for (int64_t i = 0; i < steps; ++i) measured.optimizer->step();
  device.synchronize();
  soak.device_after = device.memory();
  soak.host_after = host_bytes(measured.wrapper);
  row.soak = soak;
}

void check_save(const Measured& measured, Device& device, Row& row) {
  device.release_cached();
  device.reset_peak();
  const Memory before = device.memory();
  const auto start = Clock::now();
  save_to_nowhere(*measured.optimizer);
  row.save_s = seconds_since(start);
  if (device.counts_memory()) row.save_vram_bytes = over(device.peak(), before).allocated;
}

Row describe(const Subject& subject, const BenchOptions& options) {
  Row row;
  row.model = subject.spec.name;
  row.mode = to_string(subject.mode);
  row.optimizer = to_string(subject.kind);
  row.dtype = c10::toString(options.dtype);
  row.parameters = subject.spec.numel();
  row.state_bytes = state_bytes(subject.kind, subject.spec, options.dtype);
  return row;
}

}  // namespace

LinkTimes measure_link(LinkProbe& link, int64_t repeats) {
  std::vector<double> up, down, both;
  for (int64_t i = 0; i < repeats; ++i) {
    up.push_back(link.seconds(LinkUse::Up));
    down.push_back(link.seconds(LinkUse::Down));
    both.push_back(link.seconds(LinkUse::Both));
  }
  return {link.bytes(), quantile(up, 0.5), quantile(down, 0.5), quantile(both, 0.5)};
}

Row measure(const Subject& subject, const BenchOptions& options, Device& device,
            std::vector<Span>* spans) {
  Row row = describe(subject, options);
  device.synchronize();
  device.release_cached();
  device.reset_peak();
  const Memory base = device.memory();

  const auto start = Clock::now();
  Measured measured = make_measured(subject, options);
  row.construct_s = seconds_since(start);
  row.first_step_s = timed_step(*measured.optimizer, device);
  const Memory first = over(device.peak(), base);

  device.reset_peak();
  time_later_steps(measured, subject, options, device, row);
  if (device.counts_memory()) {
    row.first_vram = first;
    row.later_vram = over(device.peak(), base);
  }
  if (measured.wrapper != nullptr) {
    const auto tensors = kMostTensors * static_cast<int64_t>(subject.spec.parameters.size());
    take_stats(*measured.wrapper, kAlignment * tensors, row);
  }
  if (options.soak > 0) soak(measured, options.soak, device, row);
  // State rests in the same way in all modes, and an archive of tens of GiB takes its time.
  if (options.save_check && subject.mode == Mode::Streamed) check_save(measured, device, row);
  if (spans != nullptr && subject.mode == Mode::Streamed) *spans = record_step(*measured.wrapper);
  return row;
}

}  // namespace optim_offload::bench
