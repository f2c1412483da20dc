#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <torch/version.h>

#include "bench/device.h"
#include "bench/statistics.h"
#include "transfer/simulated_device.h"

namespace optim_offload::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class SimulatedDevice : public Device {
 public:
  c10::Device torch_device() const override { return c10::Device(c10::kCPU); }

  Environment environment() const override {
    return {"SIMULATED", "none", TORCH_VERSION, utc_now(), true};
  }

  void synchronize() override {}

  double timed(const std::function<void()>& work) override {
    const auto start = Clock::now();
    work();
    return seconds_since(start);
  }

  bool counts_memory() const override { return false; }
  Memory memory() const override { return {}; }
  Memory peak() const override { return {}; }
  void reset_peak() override {}
  void release_cached() override {}

  LinkTimes measure_link(int64_t bytes, int64_t repeats) override {
    const auto size = static_cast<size_t>(bytes);
    std::vector<char> up_from(size, 1), up_to(size), down_from(size, 2), down_to(size);
    const auto up = [&] { std::memcpy(up_to.data(), up_from.data(), size); };
    const auto down = [&] { std::memcpy(down_to.data(), down_from.data(), size); };
    std::vector<double> h2d, d2h, both;
    for (int64_t i = 0; i < repeats; ++i) {
      h2d.push_back(timed(up));
      d2h.push_back(timed(down));
      both.push_back(timed([&] {
        std::thread other(down);
        up();
        other.join();
      }));
    }
    return {bytes, quantile(h2d, 0.5), quantile(d2h, 0.5), quantile(both, 0.5)};
  }

 private:
  transfer::ScopedSimulatedDevice simulated_;
};

}  // namespace

std::unique_ptr<Device> make_simulated_device() { return std::make_unique<SimulatedDevice>(); }

}  // namespace optim_offload::bench
