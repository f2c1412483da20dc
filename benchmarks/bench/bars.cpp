#include <algorithm>
#include <functional>

#include "bench/report.h"
#include "bench/svg.h"

namespace optim_offload::bench {

namespace {

constexpr const char* kMain = "#3b6fb6";
constexpr const char* kSecond = "#a9c2e3";
constexpr const char* kLimit = "#c0392b";

struct Bar {
  double value = 0;
  const char* color = kMain;
  std::string text;
};

// One mode: its bars, one above the other, and perhaps a mark.
struct Group {
  std::string label;
  std::vector<Bar> bars;
  std::optional<double> mark;
};

// What shares a scale.
struct Panel {
  std::string title;
  std::vector<Group> groups;
};

using GroupOf = std::function<std::optional<Group>(const Row&)>;

std::vector<Panel> panels_of(const Report& report, const GroupOf& group_of) {
  std::vector<Panel> panels;
  for (const auto& row : report.rows) {
    const auto group = group_of(row);
    if (!group) continue;
    const std::string title = row.model + ", " + row.optimizer + ", " +
                              short_number(static_cast<double>(row.state_bytes) / kMiB) +
                              " MiB of state";
    if (panels.empty() || panels.back().title != title) panels.push_back({title, {}});
    panels.back().groups.push_back(*group);
  }
  return panels;
}

double largest(const Panel& panel) {
  double value = 0;
  for (const auto& group : panel.groups) {
    for (const auto& bar : group.bars) value = std::max(value, bar.value);
    if (group.mark) value = std::max(value, *group.mark);
  }
  return value;
}

constexpr double kWidth = 760, kLeft = 110, kRight = 170, kBar = 16, kGap = 8, kHead = 30;

double height_of(const Panel& panel) {
  double height = kHead;
  for (const auto& group : panel.groups) {
    height += kBar * static_cast<double>(group.bars.size()) + kGap;
  }
  return height + 10;
}

void draw(SvgWriter& svg, const Panel& panel, double y) {
  const double most = largest(panel);
  const double scale = most > 0 ? (kWidth - kLeft - kRight) / most : 0;
  svg.text(kLeft, y + 18, panel.title, 13, SvgWriter::Anchor::Start, true);
  y += kHead;
  for (const auto& group : panel.groups) {
    const double height = kBar * static_cast<double>(group.bars.size());
    svg.text(kLeft - 8, y + height / 2 + 4, group.label, 12, SvgWriter::Anchor::End);
    for (size_t i = 0; i < group.bars.size(); ++i) {
      const Bar& bar = group.bars[i];
      const double top = y + kBar * static_cast<double>(i);
      svg.rect(kLeft, top, std::max(bar.value * scale, 1.0), kBar - 1, bar.color);
      svg.text(kLeft + bar.value * scale + 6, top + 12, bar.text, 11);
    }
    if (group.mark) {
      const double x = kLeft + *group.mark * scale;
      svg.rect(x - 1, y - 2, 2, height + 3, kLimit);
    }
    y += height + kGap;
  }
}

std::string picture(const Report& report, const std::string& title, const std::string& legend,
                    const GroupOf& group_of) {
  const auto panels = panels_of(report, group_of);
  double height = 60;
  for (const auto& panel : panels) height += height_of(panel);
  SvgWriter svg(kWidth, height, report.environment.date);
  const std::string where = report.environment.simulated ? "SIMULATED" : report.environment.gpu;
  svg.text(16, 24, title + " (" + where + ")", 15, SvgWriter::Anchor::Start, true);
  svg.text(16, 42, legend, 11);
  double y = 54;
  for (const auto& panel : panels) {
    draw(svg, panel, y);
    y += height_of(panel);
  }
  return svg.finish();
}

std::string ratio_text(const Row& row) {
  const auto ratio = row.step_over_limit();
  if (!ratio) return "";
  char text[48];
  std::snprintf(text, sizeof(text), " (%.3f of limit)", *ratio);
  return text;
}

}  // namespace

std::string step_time_svg(const Report& report) {
  return picture(report, "Time of one optimizer step", "Median in ms; red: the mode's limit.",
                 [](const Row& row) -> std::optional<Group> {
                   const double ms = row.step_s.median * 1e3;
                   Group group{row.mode, {{ms, kMain, short_number(ms) + ratio_text(row)}}, {}};
                   if (row.limit_s) group.mark = *row.limit_s * 1e3;
                   return group;
                 });
}

std::string vram_svg(const Report& report) {
  return picture(report, "GPU memory over weights and gradients",
                 "Peak in MiB, first step included; dark: allocated, light: reserved.",
                 [](const Row& row) -> std::optional<Group> {
                   const auto vram = row.vram();
                   if (!vram) return std::nullopt;
                   const double allocated = static_cast<double>(vram->allocated) / kMiB;
                   const double reserved = static_cast<double>(vram->reserved) / kMiB;
                   return Group{row.mode,
                                {{allocated, kMain, short_number(allocated)},
                                 {reserved, kSecond, short_number(reserved)}},
                                {}};
                 });
}

}  // namespace optim_offload::bench
