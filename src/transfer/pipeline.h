#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "transfer/link.h"

namespace optim_offload::transfer {

/// One piece's way through the pipeline, called in this order by the thread that feeds it.
class PieceJob {
 public:
  virtual ~PieceJob() = default;

  /// For profilers.
  virtual const char* name() const = 0;

  /// Copies from the host to the piece's slot. Queued as soon as the slot is free.
  virtual std::span<const Copy> uploads() const = 0;

  /// Steps the piece on the compute lane; called once its uploads are ordered before that lane.
  /// Returns the copies to the host.
  virtual std::span<const Copy> compute() = 0;

  /// The copies that compute() returned are queued.
  virtual void downloads_queued() = 0;

  /// Whether the piece holds device memory of its own, outside of its slot, until retire().
  virtual bool holds_memory() const = 0;

  /// Lets go of that memory: its copies are done, or ordered before all further compute work.
  virtual void retire() = 0;
};

/// Copies and steps pieces in the order in which they are given, with the copies up, the compute
/// and the copies down of different pieces at the same time. The host never waits before finish().
///
/// Piece i uses slot i mod `slots`. Its copy up waits for the copy down of that slot alone; a wait
/// for the whole D2H lane would put the two directions in lockstep.
class Pipeline {
 public:
  /// Events are made here and used for the object's life; the link makes its lanes on first use.
  Pipeline(Link& link, size_t slots);

  /// Starts a step. `slots_allocated`: slots were taken from the compute lane's memory.
  void begin(bool slots_allocated);

  /// Queues the job's copies up; steps the oldest waiting job first if all slots are taken. `job`
  /// must live until finish() or abort().
  void submit(PieceJob& job);

  /// Steps what waits. All work of the step is queued then.
  void drain();

  /// drain(), and returns when all copies are done.
  void finish();

  /// After a throw: waits until none of its copies is in flight and forgets all jobs. Never throws;
  /// false where the device could not be waited for.
  bool abort() noexcept;

  /// Called before and after each stage of each job is queued, for time lines.
  enum class Stage { Upload, Step, Download };
  using Probe = std::function<void(const PieceJob&, Stage, bool begin)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  struct Slot {
    std::unique_ptr<Event> arrived;
    std::unique_ptr<Event> stepped;
    std::unique_ptr<Event> drained;
    PieceJob* job = nullptr;  ///< The latest job here that has been stepped and not retired.
    bool used = false;        ///< `drained` was recorded in this step.
  };

  void upload(PieceJob& job, Slot& slot);
  void compute_oldest();
  void probe(const PieceJob& job, Stage stage, bool begin) {
    if (probe_) probe_(job, stage, begin);
  }

  Link& link_;
  std::unique_ptr<Event> started_;
  std::vector<Slot> slots_;
  std::deque<PieceJob*> waiting_;  // submitted, not yet stepped
  size_t submitted_ = 0;
  size_t stepped_ = 0;
  bool slots_allocated_ = false;
  Probe probe_;
};

}  // namespace optim_offload::transfer
