#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace optim_offload::transfer {

/// Proves the order of a simulated device's work, in the way of a race detector. Each lane has a
/// vector clock: what of every lane is known to be done before whatever this lane does next. An
/// access to memory must come after each earlier one that it conflicts with (one of the two writes)
/// by way of events and waits; that it did so by luck of timing does not count. Memory of two
/// devices is never the same, although one allocator gives both. All is decided when work is
/// queued, so the verdict is the same in every run. Thread-safe.
class OrderCheck {
 public:
  using Lane = size_t;
  /// The host: what it queues comes after all that it has waited for.
  static constexpr Lane kHost = 0;
  /// The current stream of the first device.
  static constexpr Lane kCompute = 1;
  /// The current stream of a device, which all links of it share.
  static constexpr Lane compute(int device) { return kCompute + static_cast<Lane>(device); }

  /// A point in all lanes: for each the number of its last access that is done.
  using Clock = std::vector<uint64_t>;

  explicit OrderCheck(int devices = 1);

  Lane add_lane(std::string name, int device = 0);

  /// What is done before whatever is queued on `lane` from now on. An event keeps it.
  Clock now(Lane lane);

  /// `lane` has waited for `done`.
  void wait(Lane lane, const Clock& done);

  enum class Access { Read, Write };
  enum class Side { Device, Host };

  /// `lane` accesses this memory; `what` says by which work, a literal. False, and an error is
  /// kept, where an earlier access that conflicts may still be going on.
  bool access(Lane lane, const void* data, size_t bytes, Access access, Side side,
              const char* what);

  /// Bytes of `side` that some lane may still read or write, as the host has not waited for it.
  size_t bytes_in_use(Side side) const;

  /// Each kind of missing order once, in the order found. take_errors() forgets them.
  std::vector<std::string> errors() const;
  std::vector<std::string> take_errors();

 private:
  struct Touch {
    uint64_t number = 0;  ///< Of the lane's accesses; 0 for none.
    const char* what = "";
  };
  struct LaneTouch {
    Lane lane;
    Touch read;
    Touch write;
  };
  struct Stretch {
    uintptr_t end;
    Side side;
    std::vector<LaneTouch> touches;  ///< The last ones of each lane.
  };
  using Stretches = std::map<uintptr_t, Stretch>;

  void catch_up(Lane lane, const Clock& done);
  uint64_t done(Lane observer, Lane lane) const;
  void split(uintptr_t at);
  bool follows(Lane lane, const Stretch& stretch, Access access, Side side, const char* what);
  void forget_what_host_knows();

  mutable std::mutex mutex_;
  struct LaneName {
    std::string name;
    int device;  ///< Whose lane it is; kNoDevice for the host.
  };
  static constexpr int kNoDevice = -1;

  bool share_memory(Lane one, Lane other) const;

  std::vector<LaneName> names_;
  std::vector<Clock> clocks_;
  Stretches stretches_;  // by begin, none overlap
  std::vector<std::string> errors_;
};

}  // namespace optim_offload::transfer
