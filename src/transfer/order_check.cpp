#include "transfer/order_check.h"

#include <algorithm>
#include <utility>

namespace optim_offload::transfer {

OrderCheck::OrderCheck(int devices) {
  add_lane("the host", kNoDevice);
  for (int device = 0; device < devices; ++device) add_lane("the compute lane", device);
}

OrderCheck::Lane OrderCheck::add_lane(std::string name, int device) {
  const std::lock_guard lock(mutex_);
  names_.push_back({std::move(name), device});
  clocks_.emplace_back();
  return names_.size() - 1;
}

OrderCheck::Clock OrderCheck::now(Lane lane) {
  const std::lock_guard lock(mutex_);
  catch_up(lane, clocks_[kHost]);
  return clocks_[lane];
}

void OrderCheck::wait(Lane lane, const Clock& done) {
  const std::lock_guard lock(mutex_);
  catch_up(lane, done);
  if (lane == kHost) forget_what_host_knows();
}

void OrderCheck::catch_up(Lane lane, const Clock& done) {
  Clock& clock = clocks_[lane];
  if (clock.size() < done.size()) clock.resize(done.size());
  for (size_t i = 0; i < done.size(); ++i) clock[i] = std::max(clock[i], done[i]);
}

uint64_t OrderCheck::done(Lane observer, Lane lane) const {
  const Clock& clock = clocks_[observer];
  return lane < clock.size() ? clock[lane] : 0;
}

bool OrderCheck::access(Lane lane, const void* data, size_t bytes, Access access, Side side,
                        const char* what) {
  if (bytes == 0) return true;
  const std::lock_guard lock(mutex_);
  catch_up(lane, clocks_[kHost]);
  Clock& clock = clocks_[lane];
  if (clock.size() <= lane) clock.resize(lane + 1);
  const uint64_t number = ++clock[lane];

  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = begin + bytes;
  split(begin);
  split(end);
  bool ordered = true;
  uintptr_t at = begin;
  while (at < end) {
    const auto next = stretches_.lower_bound(at);
    if (next == stretches_.end() || next->first > at) {  // not known yet
      const uintptr_t gap_end = next == stretches_.end() ? end : std::min(end, next->first);
      stretches_.emplace(at, Stretch{gap_end, side, {}});
    }
    Stretch& stretch = stretches_.at(at);
    ordered = follows(lane, stretch, access, side, what) && ordered;
    stretch.side = side;
    auto own = std::find_if(stretch.touches.begin(), stretch.touches.end(),
                            [lane](const LaneTouch& t) { return t.lane == lane; });
    if (own == stretch.touches.end()) {
      own = stretch.touches.insert(own, LaneTouch{lane, {}, {}});
    }
    (access == Access::Read ? own->read : own->write) = {number, what};
    at = stretch.end;
  }
  return ordered;
}

/// Lets a stretch begin at `at` where one lies across it.
void OrderCheck::split(uintptr_t at) {
  auto after = stretches_.upper_bound(at);
  if (after == stretches_.begin()) return;
  Stretch& across = std::prev(after)->second;
  if (std::prev(after)->first == at || across.end <= at) return;
  Stretch rest = across;
  across.end = at;
  stretches_.emplace_hint(after, at, std::move(rest));
}

bool OrderCheck::share_memory(Lane one, Lane other) const {
  const int device = names_[one].device;
  const int other_device = names_[other].device;
  return device == other_device || device == kNoDevice || other_device == kNoDevice;
}

bool OrderCheck::follows(Lane lane, const Stretch& stretch, Access access, Side side,
                         const char* what) {
  bool ordered = true;
  const auto check = [&](const LaneTouch& other, const Touch& touch, const char* verb) {
    if (touch.number <= done(lane, other.lane)) return;
    ordered = false;
    std::string error = std::string(what) + " on " + names_[lane].name +
                        (access == Access::Read ? " reads" : " writes") + " memory that " +
                        touch.what + " on " + names_[other.lane].name + " may still be " + verb +
                        ": no wait puts one after the other";
    if (std::find(errors_.begin(), errors_.end(), error) == errors_.end())
      errors_.push_back(std::move(error));
  };
  const bool on_device = side == Side::Device && stretch.side == Side::Device;
  for (const LaneTouch& other : stretch.touches) {
    if (on_device && !share_memory(lane, other.lane)) continue;
    check(other, other.write, "writing");
    if (access == Access::Write) check(other, other.read, "reading");
  }
  return ordered;
}

/// All that is queued later comes after this, whatever its lane.
void OrderCheck::forget_what_host_knows() {
  std::erase_if(stretches_, [this](const auto& entry) {
    const auto& touches = entry.second.touches;
    return std::all_of(touches.begin(), touches.end(), [this](const LaneTouch& t) {
      return std::max(t.read.number, t.write.number) <= done(kHost, t.lane);
    });
  });
}

size_t OrderCheck::bytes_in_use(Side side) const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [begin, stretch] : stretches_) {
    if (stretch.side == side) bytes += stretch.end - begin;
  }
  return bytes;
}

std::vector<std::string> OrderCheck::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

std::vector<std::string> OrderCheck::take_errors() {
  const std::lock_guard lock(mutex_);
  return std::exchange(errors_, {});
}

}  // namespace optim_offload::transfer
