#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <c10/core/Device.h>

#include "transfer/wait_point.h"

namespace optim_offload::transfer {

/// The three queues of a device. Work on one lane runs in order; lanes wait for each other only
/// through events.
enum class Lane {
  Compute,  ///< The caller's current stream, where the base's kernels run.
  H2D,      ///< Dedicated to copies to the device.
  D2H,      ///< Dedicated to copies to the host.
};

enum class Direction { ToDevice, ToHost };

struct Copy {
  void* dst;
  const void* src;
  size_t bytes;
};

/// A point in a lane. Made by Link::make_event() and used with that link alone.
class Event {
 public:
  virtual ~Event() = default;
};

/// The way between host memory and one device: the seam behind which CUDA, or an imitation of it,
/// lies. Nothing here waits on the host except synchronize() and elapsed_us(). The H2D and D2H
/// lanes are made on first use, so a caller that copies on Lane::Compute makes no stream object.
/// Errors of the device are thrown as `c10::Error`. Not thread-safe.
class Link {
 public:
  virtual ~Link() = default;

  virtual c10::Device device() const = 0;

  /// `timed` events can be given to elapsed_us().
  virtual std::unique_ptr<Event> make_event(bool timed = false) = 0;

  /// Queues copies on `lane`, in order. Both sides must stay alive until they are done.
  virtual void copy(Lane lane, Direction direction, std::span<const Copy> copies) = 0;

  /// Marks in `event` the point that `lane` has been queued up to.
  virtual void record(Lane lane, Event& event) = 0;

  /// Lets `lane` go on only after the point last marked in `event`; no wait where none was.
  /// `point` names the call for tests.
  virtual void wait(Lane lane, const Event& event, WaitPoint point) = 0;

  /// Waits on the host until `lane` is empty. `point` names the call for tests.
  virtual void synchronize(Lane lane, WaitPoint point) = 0;

  /// Says that work on `lane`, queued just now or next, uses `bytes` of device memory by another
  /// way than copy(); `what` names the work, a literal. A simulated device checks that no other
  /// lane can be using that memory at the same time. Nothing on a real one.
  virtual void uses(Lane /*lane*/, const void* /*memory*/, size_t /*bytes*/, const char* /*what*/) {
  }

  /// Waits for both timed events and gives the microseconds between them.
  virtual double elapsed_us(const Event& begin, const Event& end) = 0;
};

/// The link to `device`: CUDA's for a CUDA device, a simulated one for a simulated device,
/// null for the CPU (state on the CPU already rests where it should).
///
/// Throws for devices of other kinds.
std::unique_ptr<Link> make_link(c10::Device device);

std::unique_ptr<Link> make_cuda_link(c10::Device device);
std::unique_ptr<Link> make_simulated_link(c10::Device device);

}  // namespace optim_offload::transfer
