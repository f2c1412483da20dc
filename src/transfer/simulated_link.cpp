#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "error.h"
#include "transfer/counters.h"
#include "transfer/link.h"
#include "transfer/simulated_device.h"
#include "transfer/worker.h"

namespace optim_offload::transfer {
namespace {

using Clock = std::chrono::steady_clock;

/// What one record() promises: set when its lane gets there.
struct Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Clock::time_point when;

  void set() {
    {
      const std::lock_guard lock(mutex);
      done = true;
      when = Clock::now();
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
};

class SimulatedEvent final : public Event {
 public:
  SimulatedEvent() { ++counters().events; }
  std::shared_ptr<Signal> signal;  // null until recorded
};

std::shared_ptr<Signal> signal_of(const Event& event) {
  return static_cast<const SimulatedEvent&>(event).signal;
}

/// The compute lane is the calling thread: work on it is done when the call returns.
class SimulatedLink final : public Link {
 public:
  explicit SimulatedLink(c10::Device device)
      : device_(device), options_(simulated_device_options()) {}

  c10::Device device() const override { return device_; }

  std::unique_ptr<Event> make_event(bool /*timed*/) override {
    return std::make_unique<SimulatedEvent>();
  }

  void copy(Lane lane, Direction direction, std::span<const Copy> copies) override {
    counters().copies += static_cast<int64_t>(copies.size());
    if (lane == Lane::Compute) {
      for (const Copy& c : copies) std::memcpy(c.dst, c.src, c.bytes);
      return;
    }
    if (options_.poison && direction == Direction::ToHost) {
      for (const Copy& c : copies) std::memset(c.dst, 0xff, c.bytes);
    }
    worker(lane).post(
        [delay = options_.delay, list = std::vector<Copy>(copies.begin(), copies.end())] {
          for (const Copy& c : list) {
            if (delay.count() > 0) std::this_thread::sleep_for(delay);
            std::memcpy(c.dst, c.src, c.bytes);
          }
        });
  }

  void record(Lane lane, Event& event) override {
    auto signal = std::make_shared<Signal>();
    static_cast<SimulatedEvent&>(event).signal = signal;
    if (lane == Lane::Compute) {
      signal->set();
    } else {
      worker(lane).post([signal] { signal->set(); });
    }
  }

  void wait(Lane lane, const Event& event) override {
    ++counters().waits;
    const auto signal = signal_of(event);
    if (!signal) return;
    if (lane == Lane::Compute) {
      signal->wait();
    } else {
      worker(lane).post([signal] { signal->wait(); });
    }
  }

  void synchronize(Lane lane) override {
    auto& worker = lane == Lane::H2D ? h2d_ : d2h_;
    if (lane == Lane::Compute || !worker) return;
    ++counters().host_waits;
    worker->drain();
  }

  double elapsed_us(const Event& begin, const Event& end) override {
    const auto from = signal_of(begin);
    const auto to = signal_of(end);
    OFFLOAD_CHECK(from && to, "elapsed_us needs recorded events; record both first");
    from->wait();
    to->wait();
    return std::chrono::duration<double, std::micro>(to->when - from->when).count();
  }

 private:
  Worker& worker(Lane lane) {
    auto& worker = lane == Lane::H2D ? h2d_ : d2h_;
    if (!worker) {
      worker.emplace();
      ++counters().streams;
    }
    return *worker;
  }

  c10::Device device_;
  SimulatedDeviceOptions options_;
  std::optional<Worker> h2d_;
  std::optional<Worker> d2h_;
};

std::atomic<bool> active{false};
SimulatedDeviceOptions active_options;

}  // namespace

ScopedSimulatedDevice::ScopedSimulatedDevice(SimulatedDeviceOptions options) {
  OFFLOAD_CHECK(!active.exchange(true), "a simulated device lives already; end its scope first");
  active_options = options;
}

ScopedSimulatedDevice::~ScopedSimulatedDevice() { active = false; }

bool simulated_device_active() { return active; }

SimulatedDeviceOptions simulated_device_options() { return active_options; }

std::unique_ptr<Link> make_simulated_link(c10::Device device) {
  return std::make_unique<SimulatedLink>(device);
}

}  // namespace optim_offload::transfer
