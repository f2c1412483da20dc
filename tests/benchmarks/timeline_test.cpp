#include "bench/timeline.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/svg.h"

namespace optim_offload::bench {
namespace {

std::vector<Span> spans() {
  return {{"H2D", "layer 0", 0, 0, 400, 20000000},    {"step", "layer 0", 0, 400, 450, 20000000},
          {"D2H", "layer 0", 0, 450, 900, 20000000},  {"H2D", "layer 1", 1, 400, 800, 20000000},
          {"step", "layer 1", 1, 800, 850, 20000000}, {"D2H", "layer 1", 1, 900, 1000, 4000000}};
}

TEST(ChromeTrace, HasALaneEachAndCompleteEvents) {
  const auto trace = nlohmann::json::parse(to_chrome_trace(spans(), {"a step", "today"}));
  EXPECT_EQ(trace["otherData"]["run"], "today");
  std::map<int, std::string> lanes;
  std::vector<nlohmann::json> complete;
  for (const auto& event : trace.at("traceEvents")) {
    if (event["name"] == "thread_name") lanes[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") complete.push_back(event);
  }
  ASSERT_EQ(lanes.size(), 3u);
  ASSERT_EQ(complete.size(), spans().size());
  for (size_t i = 0; i < complete.size(); ++i) {
    const Span span = spans()[i];
    EXPECT_EQ(lanes[complete[i]["tid"]], span.lane);
    EXPECT_DOUBLE_EQ(complete[i]["ts"], span.begin_us);
    EXPECT_DOUBLE_EQ(complete[i]["dur"], span.end_us - span.begin_us);
    EXPECT_EQ(complete[i]["args"]["piece"], span.piece);
  }
  EXPECT_DOUBLE_EQ(complete[0]["args"]["gb_per_s"], 50);
}

TEST(BusyShare, CountsOverlapsOnce) {
  EXPECT_DOUBLE_EQ(busy_share(spans(), "H2D"), 0.8);
  EXPECT_DOUBLE_EQ(busy_share(spans(), "D2H"), 0.55);
  const std::vector<Span> over = {{"x", "a", 0, 0, 6, 0},
                                  {"x", "b", 1, 2, 4, 0},
                                  {"x", "c", 2, 5, 8, 0},
                                  {"y", "d", 3, 8, 10, 0}};
  EXPECT_DOUBLE_EQ(busy_share(over, "x"), 0.8);
  EXPECT_DOUBLE_EQ(busy_share({}, "x"), 0);
}

TEST(TimelineSvg, DrawsEachSpanOnceWithItsName) {
  const std::string svg = to_svg(spans(), {"a <step>", "today"});
  size_t count = 0;
  for (size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, spans().size());
  EXPECT_NE(svg.find("a &lt;step&gt;"), std::string::npos);
  EXPECT_NE(svg.find("80.0 % busy"), std::string::npos);
}

TEST(TimelineSvg, OfNothingIsAPictureToo) {
  EXPECT_NE(to_svg({}, {"nothing", "today"}).find("</svg>"), std::string::npos);
}

TEST(ShortNumber, KeepsThreeDigits) {
  EXPECT_EQ(short_number(0.1234), "0.123");
  EXPECT_EQ(short_number(1.005), "1.00");
  EXPECT_EQ(short_number(12.34), "12.3");
  EXPECT_EQ(short_number(99.96), "100");
  EXPECT_EQ(short_number(12345.6), "12346");
}

}  // namespace
}  // namespace optim_offload::bench
