#include "step/timeline.h"

#include <algorithm>

#include "step/piece_step.h"

namespace optim_offload::step {
namespace {

using transfer::Lane;
using Stage = transfer::Pipeline::Stage;

std::vector<TimelineEntry>* target = nullptr;

Lane lane_of(Stage stage) {
  switch (stage) {
    case Stage::Upload:
      return Lane::H2D;
    case Stage::Step:
      return Lane::Compute;
    case Stage::Download:
      break;
  }
  return Lane::D2H;
}

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::Upload:
      return "H2D";
    case Stage::Step:
      return "step";
    case Stage::Download:
      break;
  }
  return "D2H";
}

int64_t total_bytes(std::span<const transfer::Copy> copies) {
  int64_t bytes = 0;
  for (const auto& copy : copies) bytes += static_cast<int64_t>(copy.bytes);
  return bytes;
}

}  // namespace

void set_timeline(std::vector<TimelineEntry>* entries) { target = entries; }

TimelineScope::TimelineScope(transfer::Link& link, transfer::Pipeline& pipeline)
    : pipeline_(pipeline) {
  if (target == nullptr) return;
  recorder_ = std::make_unique<TimelineRecorder>(link);
  pipeline_.set_probe(recorder_->probe());
}

void TimelineScope::write() const {
  if (recorder_ != nullptr) recorder_->write(*target);
}

TimelineRecorder::TimelineRecorder(transfer::Link& link)
    : link_(link), origin_(link.make_event(/*timed=*/true)) {
  link_.record(Lane::Compute, *origin_);
}

transfer::Pipeline::Probe TimelineRecorder::probe() {
  return
      [this](const transfer::PieceJob& job, Stage stage, bool begin) { mark(job, stage, begin); };
}

void TimelineRecorder::mark(const transfer::PieceJob& job, Stage stage, bool begin) {
  const auto& step = static_cast<const PieceStep&>(job);
  if (begin) {
    const auto piece = static_cast<int64_t>(step.piece().index);
    marks_.push_back(
        {stage, step.piece().name, piece, 0, link_.make_event(true), link_.make_event(true)});
    link_.record(lane_of(stage), *marks_.back().begin);
    return;
  }
  Mark& last = marks_.back();  // stages of one thread do not overlap while they are queued
  if (stage == Stage::Upload) last.bytes = total_bytes(step.uploads());
  if (stage == Stage::Download) last.bytes = total_bytes(step.downloads());
  link_.record(lane_of(stage), *last.end);
}

void TimelineRecorder::write(std::vector<TimelineEntry>& entries) {
  entries.clear();
  for (const Mark& m : marks_) {
    entries.push_back({name_of(m.stage), m.name, m.piece, link_.elapsed_us(*origin_, *m.begin),
                       link_.elapsed_us(*origin_, *m.end), m.bytes});
  }
  if (entries.empty()) return;
  double first = entries.front().begin_us;
  for (const auto& entry : entries) first = std::min(first, entry.begin_us);
  for (auto& entry : entries) {
    entry.begin_us -= first;
    entry.end_us -= first;
  }
}

}  // namespace optim_offload::step
