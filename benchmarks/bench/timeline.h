#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace optim_offload::bench {

/// A stretch of time in which one lane worked on one piece.
struct Span {
  std::string lane;  ///< "H2D", "step" or "D2H".
  std::string name;
  int64_t piece = 0;
  double begin_us = 0;  ///< Since the step began.
  double end_us = 0;
  int64_t bytes = 0;
};

/// What the timeline shows, for its title.
struct TimelineTitle {
  std::string text;
  std::string run;  ///< Environment::date of the run.
};

/// The spans in the Trace Event Format, which Perfetto and chrome://tracing open; a row per lane.
std::string to_chrome_trace(const std::vector<Span>& spans, const TimelineTitle& title);

/// The spans as a picture, a row per lane, time from left to right.
std::string to_svg(const std::vector<Span>& spans, const TimelineTitle& title);

/// Share of the whole time in which `lane` worked, in [0, 1]; overlaps count once.
double busy_share(const std::vector<Span>& spans, const std::string& lane);

}  // namespace optim_offload::bench
