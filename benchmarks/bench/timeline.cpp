#include "bench/timeline.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "bench/svg.h"

namespace optim_offload::bench {

namespace {

// Rows in the order of the data's way, others after them as they come.
std::vector<std::string> lanes_of(const std::vector<Span>& spans) {
  std::vector<std::string> lanes = {"H2D", "step", "D2H"};
  for (const auto& span : spans) {
    if (std::find(lanes.begin(), lanes.end(), span.lane) == lanes.end()) lanes.push_back(span.lane);
  }
  return lanes;
}

double last_end_us(const std::vector<Span>& spans) {
  double end = 0;
  for (const auto& span : spans) end = std::max(end, span.end_us);
  return end;
}

// 1, 2 or 5 times a power of ten, so that about `count` marks fit.
double tick_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

const char* color_of(int64_t piece) {
  // Neighbours differ, and a piece has one colour in all lanes.
  static const char* colors[] = {"#3b6fb6", "#e0862f", "#4c9a5b", "#b4527f", "#7a6bb5", "#8a7a4f"};
  return colors[static_cast<size_t>(piece < 0 ? 0 : piece) % std::size(colors)];
}

}  // namespace

std::string to_chrome_trace(const std::vector<Span>& spans, const TimelineTitle& title) {
  using nlohmann::json;
  const auto lanes = lanes_of(spans);
  json events = json::array();
  events.push_back(
      {{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", title.text}}}});
  for (size_t i = 0; i < lanes.size(); ++i) {
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", i + 1},
                      {"name", "thread_name"},
                      {"args", {{"name", lanes[i]}}}});
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", i + 1},
                      {"name", "thread_sort_index"},
                      {"args", {{"sort_index", i}}}});
  }
  for (const auto& span : spans) {
    const auto lane = std::find(lanes.begin(), lanes.end(), span.lane) - lanes.begin();
    const double us = span.end_us - span.begin_us;
    json args = {{"piece", span.piece}, {"bytes", span.bytes}};
    if (span.bytes > 0 && us > 0) args["gb_per_s"] = static_cast<double>(span.bytes) / us * 1e-3;
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", lane + 1},
                      {"name", span.name},
                      {"cat", span.lane},
                      {"ts", span.begin_us},
                      {"dur", us},
                      {"args", args}});
  }
  return json{
      {"traceEvents", events}, {"displayTimeUnit", "ms"}, {"otherData", {{"run", title.run}}}}
      .dump(1);
}

double busy_share(const std::vector<Span>& spans, const std::string& lane) {
  const double whole = last_end_us(spans);
  if (whole <= 0) return 0;
  std::vector<std::pair<double, double>> stretches;
  for (const auto& span : spans) {
    if (span.lane == lane) stretches.emplace_back(span.begin_us, span.end_us);
  }
  std::sort(stretches.begin(), stretches.end());
  double busy = 0;
  double covered = 0;
  for (const auto& [begin, end] : stretches) {
    busy += std::max(0.0, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return busy / whole;
}

std::string to_svg(const std::vector<Span>& spans, const TimelineTitle& title) {
  constexpr double kWidth = 1000, kLeft = 110, kRight = 20, kTop = 50, kRow = 46, kBar = 32;
  const auto lanes = lanes_of(spans);
  const double bottom = kTop + kRow * static_cast<double>(lanes.size());
  SvgWriter svg(kWidth, bottom + 40, title.run);
  svg.text(kLeft, 26, title.text, 15, SvgWriter::Anchor::Start, true);
  const double whole = last_end_us(spans);
  if (whole <= 0) return svg.finish();

  const double scale = (kWidth - kLeft - kRight) / whole;  // pixels per microsecond
  const double step = tick_step(whole, 10);
  for (double us = 0; us <= whole; us += step) {
    svg.line(kLeft + us * scale, kTop - 6, kLeft + us * scale, bottom, "#dddddd");
    svg.text(kLeft + us * scale, bottom + 16, short_number(us * 1e-3), 11,
             SvgWriter::Anchor::Middle);
  }
  svg.text(kWidth - kRight, bottom + 32, "ms", 11, SvgWriter::Anchor::End);
  for (size_t i = 0; i < lanes.size(); ++i) {
    const double y = kTop + kRow * static_cast<double>(i);
    svg.text(kLeft - 10, y + 14, lanes[i], 13, SvgWriter::Anchor::End, true);
    svg.text(kLeft - 10, y + 29, short_number(busy_share(spans, lanes[i]) * 100) + " % busy", 11,
             SvgWriter::Anchor::End);
    for (const auto& span : spans) {
      if (span.lane != lanes[i]) continue;
      const double width = (span.end_us - span.begin_us) * scale;
      // A gap of a fifth of a pixel tells neighbours apart.
      svg.rect(kLeft + span.begin_us * scale, y, std::max(width - 0.2, 0.1), kBar,
               color_of(span.piece),
               span.name + ", " + short_number((span.end_us - span.begin_us) * 1e-3) + " ms");
    }
  }
  return svg.finish();
}

}  // namespace optim_offload::bench
