#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace optim_offload::train {

/// What a run shows while it trains: on a terminal one bar that is redrawn after each step, with
/// the figures of the latest report; elsewhere one plain line a report.
class Progress {
 public:
  /// Figures over the steps since the report before.
  struct Report {
    double loss = 0;  ///< Mean over the steps.
    double tokens_per_second = 0;
    double step_ms = 0;  ///< Mean, the optimizer included.
    double lr = 0;
    int64_t peak_device_bytes = 0;  ///< 0 where there is no device memory to speak of.
  };

  Progress(std::ostream& out, bool terminal, int64_t steps);

  /// Ends an unfinished bar's line.
  ~Progress();

  /// `done` steps are finished.
  void step(int64_t done);

  void report(int64_t done, const Report& report);

  /// Prints a line of its own; an unfinished bar goes on below it.
  void line(const std::string& text);

 private:
  void draw();
  void clear();

  std::ostream* out_;
  bool terminal_;
  bool drawn_ = false;
  int64_t steps_;
  int64_t done_ = 0;
  std::string figures_;
};

/// "loss 0.1234  12345 tok/s  45.6 ms/step  lr 1.00e-03  peak 123 MiB".
std::string to_text(const Progress::Report& report);

}  // namespace optim_offload::train
