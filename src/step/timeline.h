#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transfer/pipeline.h"

namespace optim_offload::step {

/// A stretch of time in which one lane of a streamed step worked on one piece.
struct TimelineEntry {
  std::string lane;  ///< "H2D", "step" or "D2H".
  std::string name;  ///< The piece's.
  int64_t piece = 0;
  double begin_us = 0;  ///< Since the step's first copy or kernel.
  double end_us = 0;
  int64_t bytes = 0;  ///< Copied; 0 for "step".
};

/// Has streamed steps write what their lanes did to `entries`, which they clear first; null ends
/// it. Costs two timed events per stage and piece. For benchmarks: one optimizer, one device at a
/// time.
void set_timeline(std::vector<TimelineEntry>* entries);

/// Marks the stages of a pipeline's jobs with timed events.
class TimelineRecorder {
 public:
  explicit TimelineRecorder(transfer::Link& link);

  transfer::Pipeline::Probe probe();

  /// Waits for the events and writes the entries in the order in which the stages were queued.
  void write(std::vector<TimelineEntry>& entries);

 private:
  struct Mark {
    transfer::Pipeline::Stage stage;
    std::string name;
    int64_t piece;
    int64_t bytes;
    std::unique_ptr<transfer::Event> begin;
    std::unique_ptr<transfer::Event> end;
  };

  void mark(const transfer::PieceJob& job, transfer::Pipeline::Stage stage, bool begin);

  transfer::Link& link_;
  std::unique_ptr<transfer::Event> origin_;
  std::deque<Mark> marks_;
};

/// Records a pipeline for the length of a scope, where set_timeline() asked for it.
class TimelineScope {
 public:
  TimelineScope(transfer::Link& link, transfer::Pipeline& pipeline);
  ~TimelineScope() { pipeline_.set_probe(nullptr); }
  TimelineScope(const TimelineScope&) = delete;
  TimelineScope& operator=(const TimelineScope&) = delete;

  void write() const;

 private:
  transfer::Pipeline& pipeline_;
  std::unique_ptr<TimelineRecorder> recorder_;
};

}  // namespace optim_offload::step
