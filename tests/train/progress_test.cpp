#include "train/progress.h"

#include <algorithm>
#include <sstream>

#include "train/support.h"

namespace optim_offload::train {
namespace {

Progress::Report report() {
  return {.loss = 1.25,
          .tokens_per_second = 1234.4,
          .step_ms = 56.78,
          .lr = 1e-3,
          .peak_device_bytes = int64_t{3} << 20};
}

TEST(Progress, PlainLinesWhereNoTerminalIs) {
  std::ostringstream out;
  {
    Progress progress(out, false, 10);
    progress.line("hello");
    progress.step(1);
    progress.report(2, report());
  }
  EXPECT_EQ(out.str(),
            "hello\nstep 2/10  loss 1.2500  1234 tok/s  56.8 ms/step  lr 1.00e-03  peak 3 MiB\n");
}

TEST(Progress, ABarThatIsRedrawnOnATerminal) {
  std::ostringstream out;
  {
    Progress progress(out, true, 4);
    progress.step(1);
    progress.report(2, report());
  }
  const auto text = out.str();
  EXPECT_TRUE(contains(text, "\r[######..................] 1/4"));
  EXPECT_TRUE(contains(text, "\r[############............] 2/4  loss 1.2500"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Progress, LeavesOutDeviceMemoryWhereThereIsNone) {
  auto figures = report();
  figures.peak_device_bytes = 0;
  EXPECT_EQ(to_text(figures).find("peak"), std::string::npos);
}

}  // namespace
}  // namespace optim_offload::train
