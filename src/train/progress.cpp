#include "train/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace optim_offload::train {
namespace {

constexpr int64_t kBarWidth = 24;

template <typename... Args>
std::string format(const char* form, Args... args) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), form, args...);
  return text.data();
}

}  // namespace

std::string to_text(const Progress::Report& r) {
  auto text = format("loss %.4f  %.0f tok/s  %.1f ms/step  lr %.2e", r.loss, r.tokens_per_second,
                     r.step_ms, r.lr);
  if (r.peak_device_bytes > 0) {
    text += format("  peak %.0f MiB", static_cast<double>(r.peak_device_bytes) / (1 << 20));
  }
  return text;
}

Progress::Progress(std::ostream& out, bool terminal, int64_t steps)
    : out_(&out), terminal_(terminal), steps_(std::max<int64_t>(steps, 1)) {}

Progress::~Progress() {
  if (drawn_) *out_ << std::endl;
}

void Progress::step(int64_t done) {
  done_ = done;
  if (terminal_) draw();
}

void Progress::report(int64_t done, const Report& report) {
  done_ = done;
  figures_ = to_text(report);
  if (terminal_) {
    draw();
  } else {
    line("step " + std::to_string(done_) + "/" + std::to_string(steps_) + "  " + figures_);
  }
}

void Progress::line(const std::string& text) {
  clear();
  *out_ << text << std::endl;
  if (terminal_ && done_ > 0 && done_ < steps_) draw();
}

void Progress::draw() {
  const auto filled = static_cast<size_t>(std::min(kBarWidth, kBarWidth * done_ / steps_));
  std::string bar(filled, '#');
  bar.resize(kBarWidth, '.');
  // "\x1b[K" clears what a longer line left behind.
  *out_ << "\r[" << bar << "] " << done_ << "/" << steps_ << "  " << figures_ << "\x1b[K"
        << std::flush;
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) *out_ << "\r\x1b[K";
  drawn_ = false;
}

}  // namespace optim_offload::train
