#include "bench/report.h"

#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/measure.h"
#include "bench/run.h"

namespace optim_offload::bench {
namespace {

using nlohmann::json;

Row row(const std::string& mode, double step_s) {
  Row row;
  row.model = "small";
  row.mode = mode;
  row.optimizer = "AdamW";
  row.dtype = "Float";
  row.state_bytes = int64_t{1383} << 20;
  row.first_step_s = 3 * step_s;
  row.step_s = summarize({step_s, step_s * 1.1, step_s * 0.9});
  row.first_vram = Memory{int64_t{200} << 20, int64_t{260} << 20};
  row.later_vram = Memory{int64_t{192} << 20, int64_t{280} << 20};
  return row;
}

Report report() {
  Report report;
  report.environment = {"A GPU <1>", "1.2", "2.11.0", "2030-01-02T03:04:05Z", false};
  report.piece_mib = 64;
  report.slots = 3;
  report.links = {{"small", "AdamW", {int64_t{1} << 30, 0.020, 0.019, 0.024}}};
  report.rows = {row("resident", 0.004), row("all-at-once", 0.050), row("streamed", 0.030)};
  for (auto& each : report.rows) each.link = report.links.front().times;
  set_limits(report.rows, 0.004);
  return report;
}

TEST(SetLimits, EachModeHasItsOwn) {
  std::vector<Row> rows = {row("resident", 1), row("all-at-once", 1), row("sequential", 1),
                           row("streamed", 1)};
  for (auto& each : rows) each.link = {1, 0.25, 0.5, 0.625};
  set_limits(rows, 0.125);
  EXPECT_FALSE(rows[0].limit_s);
  EXPECT_DOUBLE_EQ(*rows[1].limit_s, 0.875);
  EXPECT_DOUBLE_EQ(*rows[2].limit_s, 0.875);
  EXPECT_DOUBLE_EQ(*rows[3].limit_s, 0.625);
  EXPECT_DOUBLE_EQ(*rows[3].step_over_limit(), 1.6);
}

TEST(SetLimits, WithoutResidentStepOnlyStreamedHasOne) {
  std::vector<Row> rows = {row("all-at-once", 1), row("streamed", 1)};
  for (auto& each : rows) each.link = {1, 0.25, 0.5, 0.625};
  set_limits(rows, std::nullopt);
  EXPECT_FALSE(rows[0].limit_s);
  EXPECT_TRUE(rows[1].limit_s);
}

TEST(Soak, GrowthOfAnyMemoryCounts) {
  const Soak constant{10, {5, 8}, {5, 8}, 20, 20};
  EXPECT_FALSE(constant.grew());
  Soak less = constant;
  less.device_after = {4, 7};
  EXPECT_FALSE(less.grew());
  Soak reserved = constant;
  reserved.device_after.reserved = 9;
  EXPECT_TRUE(reserved.grew());
  Soak host = constant;
  host.host_after = 21;
  EXPECT_TRUE(host.grew());
}

// Answers 1 s, 2 s and 3 s for up, down and both, and a tenth more each time.
class CountingLink : public LinkProbe {
 public:
  int64_t bytes() const override { return 7; }
  double seconds(LinkUse use) override {
    double& next = next_.at(static_cast<size_t>(use));
    return std::exchange(next, next + 0.1);
  }

 private:
  std::array<double, 3> next_ = {1, 2, 3};
};

TEST(MeasureLink, GivesMediansOfEachUse) {
  CountingLink link;
  const LinkTimes times = measure_link(link, 3);
  EXPECT_EQ(times.bytes, 7);
  EXPECT_DOUBLE_EQ(times.h2d_s, 1.1);
  EXPECT_DOUBLE_EQ(times.d2h_s, 2.1);
  EXPECT_DOUBLE_EQ(times.both_s, 3.1);
}

TEST(Json, WhatWasNotMeasuredOfTheLinkIsNull) {
  Report streamed = report();
  streamed.rows.back().link = {1, 0, 0, 0.5};
  const json out = json::parse(to_json(streamed));
  EXPECT_TRUE(out["rows"][2]["link"]["h2d_s"].is_null());
  EXPECT_DOUBLE_EQ(out["rows"][2]["link"]["both_s"], 0.5);
}

TEST(Json, HasTheFormThatTheResultsKeep) {
  const json out = json::parse(to_json(report()));
  ASSERT_TRUE(out.at("link").is_object());
  EXPECT_NEAR(out["link"]["both_gb_per_s_each_way"].get<double>(), 44.739, 1e-3);
  ASSERT_EQ(out.at("rows").size(), 3u);
  for (const auto& each : out["rows"]) {
    for (const char* key :
         {"model", "mode", "optimizer", "first_step_s", "step_s", "step_over_limit",
          "vram_allocated_mib", "vram_reserved_mib", "pinned_over_state", "host_share"}) {
      EXPECT_TRUE(each.contains(key)) << key;
    }
  }
  const json& streamed = out["rows"][2];
  EXPECT_DOUBLE_EQ(streamed["step_s"], 0.030);
  EXPECT_DOUBLE_EQ(streamed["step_over_limit"], 0.030 / 0.024);
  EXPECT_DOUBLE_EQ(streamed["vram_allocated_mib"], 200);
  EXPECT_DOUBLE_EQ(streamed["vram_reserved_mib"], 280);
  EXPECT_TRUE(out["rows"][0]["step_over_limit"].is_null());
  EXPECT_TRUE(streamed["soak"].is_null());
  EXPECT_EQ(out["environment"]["simulated"], false);
}

TEST(Table, HasALinePerRowOfOneWidth) {
  std::istringstream lines(to_table(report()));
  std::vector<size_t> widths;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model", 0) == 0 || line.rfind("small  AdamW", 0) == 0) {
      widths.push_back(line.size());
    }
  }
  ASSERT_EQ(widths.size(), 4u);
  for (const size_t width : widths) EXPECT_EQ(width, widths.front());
}

TEST(Table, SaysWhenItIsSimulated) {
  Report simulated = report();
  EXPECT_EQ(to_table(simulated).find("SIMULATED"), std::string::npos);
  simulated.environment.simulated = true;
  EXPECT_EQ(to_table(simulated).rfind("SIMULATED", 0), 0u);
  EXPECT_NE(step_time_svg(simulated).find("SIMULATED"), std::string::npos);
}

// A reader that knows just enough of XML: every tag is closed, by itself or in its order.
bool is_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return false;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() && text.rfind("<svg", 0) == 0;
}

TEST(Bars, AreWellFormedAndKeepTheirRun) {
  for (const std::string& svg : {step_time_svg(report()), vram_svg(report())}) {
    EXPECT_TRUE(is_well_formed(svg));
    EXPECT_NE(svg.find("<metadata>run 2030-01-02T03:04:05Z</metadata>"), std::string::npos);
    EXPECT_NE(svg.find("A GPU &lt;1&gt;"), std::string::npos);
  }
  EXPECT_FALSE(is_well_formed("<svg><rect></svg>"));
}

TEST(Bars, LengthsFollowTheValues) {
  Report two = report();
  two.rows.erase(two.rows.begin() + 1);
  for (auto& each : two.rows) each.limit_s.reset();
  two.rows[0].step_s = summarize({1});
  two.rows[1].step_s = summarize({4});
  const std::string svg = step_time_svg(two);
  // 480 pixels for the longest.
  EXPECT_NE(svg.find("width=\"480.00\""), std::string::npos);
  EXPECT_NE(svg.find("width=\"120.00\""), std::string::npos);
}

}  // namespace
}  // namespace optim_offload::bench
