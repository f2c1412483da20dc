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
  OrderCheck::Clock done;          // what comes before it
};

const SimulatedEvent& own(const Event& event) { return static_cast<const SimulatedEvent&>(event); }

void fill_with_nan(const void* memory, size_t bytes) {
  std::memset(const_cast<void*>(memory), 0xff, bytes);
}

/// Runs on a lane's worker, or at once on the compute lane.
struct CopyTask {
  Copy copy;
  std::chrono::microseconds delay;
  bool poison_first;  ///< The target is free until the copy begins.
  bool ordered;       ///< If not, what it would copy is anyone's guess.

  void operator()() const {
    if (poison_first || !ordered) fill_with_nan(copy.dst, copy.bytes);
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (ordered) std::memcpy(copy.dst, copy.src, copy.bytes);
  }
};

/// The compute lane is the calling thread: work on it is done when the call returns. Whether it
/// would be so on a device, where lanes run ahead and behind, only the order check can tell.
class SimulatedLink final : public Link {
 public:
  explicit SimulatedLink(c10::Device device)
      : device_(device),
        options_(simulated_device_options()),
        order_(simulated_device_order()),
        number_(device.is_cpu() ? 0 : device.index()),
        compute_(OrderCheck::compute(number_)) {}

  c10::Device device() const override { return device_; }

  std::unique_ptr<Event> make_event(bool /*timed*/) override {
    return std::make_unique<SimulatedEvent>();
  }

  void copy(Lane lane, Direction direction, std::span<const Copy> copies) override {
    counters().copies += static_cast<int64_t>(copies.size());
    for (const Copy& c : copies) {
      CopyTask task{c, options_.delay, false, check(lane, direction, c) || !options_.poison};
      if (lane == Lane::Compute) {
        task.delay = {};
        task();
        continue;
      }
      if (direction == Direction::ToDevice) {
        task.poison_first = options_.poison;
      } else if (options_.poison) {
        fill_with_nan(c.dst, c.bytes);  // until the copy is done
      }
      queue(lane).worker.post(task);
    }
  }

  void record(Lane lane, Event& event) override {
    auto signal = std::make_shared<Signal>();
    auto& mine = static_cast<SimulatedEvent&>(event);
    mine.signal = signal;
    mine.done = order_->now(id(lane));
    if (lane == Lane::Compute) {
      signal->set();
    } else {
      queue(lane).worker.post([signal] { signal->set(); });
    }
  }

  void wait(Lane lane, const Event& event, WaitPoint point) override {
    ++counters().waits;
    const auto signal = own(event).signal;
    if (!signal || options_.without == point) return;
    order_->wait(id(lane), own(event).done);
    if (lane == Lane::Compute) {
      signal->wait();
    } else {
      queue(lane).worker.post([signal] { signal->wait(); });
    }
  }

  void synchronize(Lane lane, WaitPoint point) override {
    if (options_.without == point) return;
    if (lane == Lane::Compute) {
      order_->wait(OrderCheck::kHost, order_->now(compute_));
      return;
    }
    auto& queue = lane == Lane::H2D ? h2d_ : d2h_;
    if (!queue) return;
    ++counters().host_waits;
    queue->worker.drain();
    order_->wait(OrderCheck::kHost, order_->now(queue->id));
  }

  void uses(Lane lane, const void* memory, size_t bytes, const char* what) override {
    using enum OrderCheck::Access;
    if (order_->access(id(lane), memory, bytes, Write, OrderCheck::Side::Device, what)) return;
    if (!options_.poison) return;
    for (auto* queue : {&h2d_, &d2h_}) {
      if (*queue) (*queue)->worker.drain();  // so that the NaN stays
    }
    fill_with_nan(memory, bytes);
  }

  double elapsed_us(const Event& begin, const Event& end) override {
    const auto from = own(begin).signal;
    const auto to = own(end).signal;
    OFFLOAD_CHECK(from && to, "elapsed_us needs recorded events; record both first");
    from->wait();
    to->wait();
    order_->wait(OrderCheck::kHost, own(begin).done);
    order_->wait(OrderCheck::kHost, own(end).done);
    return std::chrono::duration<double, std::micro>(to->when - from->when).count();
  }

 private:
  struct Queue {
    explicit Queue(OrderCheck::Lane lane) : id(lane) {}
    OrderCheck::Lane id;
    Worker worker;
  };

  Queue& queue(Lane lane) {
    auto& queue = lane == Lane::H2D ? h2d_ : d2h_;
    if (!queue) {
      queue.emplace(order_->add_lane(lane == Lane::H2D ? "the H2D lane" : "the D2H lane", number_));
      ++counters().streams;
    }
    return *queue;
  }

  OrderCheck::Lane id(Lane lane) { return lane == Lane::Compute ? compute_ : queue(lane).id; }

  bool check(Lane lane, Direction direction, const Copy& copy) {
    using enum OrderCheck::Access;
    using enum OrderCheck::Side;
    const bool up = direction == Direction::ToDevice;
    const char* what = up ? "a copy up" : "a copy down";
    const bool read =
        order_->access(id(lane), copy.src, copy.bytes, Read, up ? Host : Device, what);
    const bool written =
        order_->access(id(lane), copy.dst, copy.bytes, Write, up ? Device : Host, what);
    return read && written;
  }

  c10::Device device_;
  SimulatedDeviceOptions options_;
  std::shared_ptr<OrderCheck> order_;
  int number_;  // of the device
  OrderCheck::Lane compute_;
  std::optional<Queue> h2d_;
  std::optional<Queue> d2h_;
};

}  // namespace

std::unique_ptr<Link> make_simulated_link(c10::Device device) {
  return std::make_unique<SimulatedLink>(device);
}

}  // namespace optim_offload::transfer
