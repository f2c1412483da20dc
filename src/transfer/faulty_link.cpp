#include "transfer/faulty_link.h"

#include <utility>

#include "fault.h"

namespace optim_offload::transfer {
namespace {

class FaultyLink final : public Link {
 public:
  explicit FaultyLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  c10::Device device() const override { return link_->device(); }

  std::unique_ptr<Event> make_event(bool timed) override {
    throw_if_fault_due(FaultSite::MakeEvent);
    return link_->make_event(timed);
  }

  void copy(Lane lane, Direction direction, std::span<const Copy> copies) override {
    const bool up = direction == Direction::ToDevice;
    for (const Copy& c : copies) {
      throw_if_fault_due(up ? FaultSite::CopyUp : FaultSite::CopyDown);
      link_->copy(lane, direction, {&c, 1});
    }
  }

  void record(Lane lane, Event& event) override {
    throw_if_fault_due(FaultSite::RecordEvent);
    link_->record(lane, event);
  }

  void wait(Lane lane, const Event& event, WaitPoint point) override {
    throw_if_fault_due(FaultSite::LaneWait);
    link_->wait(lane, event, point);
  }

  void synchronize(Lane lane, WaitPoint point) override {
    const bool due = fault_due(FaultSite::HostWait);
    // Nothing is in flight on a device that is lost.
    if (!due || fault_lasts()) link_->synchronize(lane, point);
    if (due) throw_fault(FaultSite::HostWait);
  }

  void uses(Lane lane, const void* memory, size_t bytes, const char* what) override {
    link_->uses(lane, memory, bytes, what);
  }

  double elapsed_us(const Event& begin, const Event& end) override {
    return link_->elapsed_us(begin, end);
  }

 private:
  std::unique_ptr<Link> link_;
};

}  // namespace

std::unique_ptr<Link> make_faulty_link(std::unique_ptr<Link> link) {
  return std::make_unique<FaultyLink>(std::move(link));
}

}  // namespace optim_offload::transfer
