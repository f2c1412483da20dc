#include <cstring>
#include <thread>
#include <vector>

#include <torch/version.h>

#include "bench/clock.h"
#include "bench/device.h"
#include "transfer/simulated_device.h"

namespace optim_offload::bench {

namespace {

class SimulatedLinkProbe : public LinkProbe {
 public:
  explicit SimulatedLinkProbe(int64_t bytes)
      : up_from_(static_cast<size_t>(bytes), 1),
        up_to_(up_from_.size()),
        down_from_(up_from_.size(), 2),
        down_to_(up_from_.size()) {}

  int64_t bytes() const override { return static_cast<int64_t>(up_from_.size()); }

  double seconds(LinkUse use) override {
    const auto start = Clock::now();
    std::thread other;
    if (use == LinkUse::Both) other = std::thread([this] { copy(down_to_, down_from_); });
    if (use == LinkUse::Down) {
      copy(down_to_, down_from_);
    } else {
      copy(up_to_, up_from_);
    }
    if (other.joinable()) other.join();
    return seconds_since(start);
  }

 private:
  static void copy(std::vector<char>& to, const std::vector<char>& from) {
    std::memcpy(to.data(), from.data(), from.size());
  }

  std::vector<char> up_from_, up_to_, down_from_, down_to_;
};

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

  std::unique_ptr<LinkProbe> open_link(int64_t bytes) override {
    return std::make_unique<SimulatedLinkProbe>(bytes);
  }

 private:
  transfer::ScopedSimulatedDevice simulated_;
};

}  // namespace

std::unique_ptr<Device> make_simulated_device() { return std::make_unique<SimulatedDevice>(); }

}  // namespace optim_offload::bench
