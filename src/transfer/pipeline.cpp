#include "transfer/pipeline.h"

#include <atomic>
#include <exception>

#include "error.h"
#include "transfer/nvtx.h"

namespace optim_offload::transfer {
namespace {
std::atomic<int> skipped_wait{-1};
}  // namespace

void skip_wait_for_testing(int wait_point) { skipped_wait = wait_point; }

bool wait_skipped(WaitPoint point) { return skipped_wait == static_cast<int>(point); }

Pipeline::Pipeline(Link& link, size_t slots)
    : link_(link), started_(link.make_event()), slots_(slots) {
  for (Slot& slot : slots_) {
    slot.arrived = link.make_event();
    slot.stepped = link.make_event();
    slot.drained = link.make_event();
  }
}

void Pipeline::begin(bool slots_allocated) {
  submitted_ = stepped_ = 0;
  slots_allocated_ = slots_allocated;
  for (Slot& slot : slots_) slot.used = false;
  if (slots_allocated) {
    link_.record(Lane::Compute, *started_);
    wait(WaitPoint::SlotsAllocated, Lane::H2D, *started_);
  }
}

void Pipeline::submit(PieceJob& job) {
  if (waiting_.size() == slots_.size()) compute_oldest();
  upload(job, slots_[submitted_ % slots_.size()]);
  waiting_.push_back(&job);
  ++submitted_;
}

void Pipeline::upload(PieceJob& job, Slot& slot) {
  const auto copies = job.uploads();
  if (copies.empty()) return;
  if (slot.used) wait(WaitPoint::SlotFree, Lane::H2D, *slot.drained);
  OFFLOAD_NVTX_RANGE(job.name());
  probe(job, Stage::Upload, true);
  link_.copy(Lane::H2D, Direction::ToDevice, copies);
  link_.record(Lane::H2D, *slot.arrived);
  probe(job, Stage::Upload, false);
}

void Pipeline::compute_oldest() {
  PieceJob& job = *waiting_.front();
  waiting_.pop_front();
  Slot& slot = slots_[stepped_++ % slots_.size()];

  if (slot.job != nullptr) {
    if (slot.job->holds_memory()) wait(WaitPoint::MemoryFree, Lane::Compute, *slot.drained);
    slot.job->retire();
  }
  slot.job = &job;
  if (!job.uploads().empty()) wait(WaitPoint::StateArrived, Lane::Compute, *slot.arrived);

  OFFLOAD_NVTX_RANGE(job.name());
  probe(job, Stage::Step, true);
  const auto copies = job.compute();
  link_.record(Lane::Compute, *slot.stepped);
  probe(job, Stage::Step, false);

  wait(WaitPoint::PieceStepped, Lane::D2H, *slot.stepped);
  probe(job, Stage::Download, true);
  if (!copies.empty()) link_.copy(Lane::D2H, Direction::ToHost, copies);
  link_.record(Lane::D2H, *slot.drained);
  job.downloads_queued();
  probe(job, Stage::Download, false);
  slot.used = true;

  // Beside allocated slots, memory of a piece's own would add up to twice the bound: give it back
  // before the next piece makes more.
  if (slots_allocated_ && job.holds_memory()) {
    wait(WaitPoint::MemoryFree, Lane::Compute, *slot.drained);
    job.retire();
  }
}

void Pipeline::drain() {
  while (!waiting_.empty()) compute_oldest();
}

void Pipeline::finish() {
  drain();
  if (!wait_skipped(WaitPoint::CopiesDone)) link_.synchronize(Lane::D2H);
  for (Slot& slot : slots_) {
    if (slot.job != nullptr) slot.job->retire();
    slot.job = nullptr;
  }
}

bool Pipeline::abort() noexcept {
  bool waited = true;
  for (const Lane lane : {Lane::H2D, Lane::D2H, Lane::Compute}) {
    try {
      link_.synchronize(lane);
    } catch (const std::exception& error) {
      TORCH_WARN("[optim_offload] could not wait for copies after a failed step (", error.what(),
                 "); the device is likely lost: end the process and resume from a checkpoint");
      waited = false;
    }
  }
  waiting_.clear();
  // Jobs keep their memory: what a failed one left there may still have to be brought home.
  for (Slot& slot : slots_) slot.job = nullptr;
  return waited;
}

void Pipeline::wait(WaitPoint point, Lane lane, const Event& event) {
  if (!wait_skipped(point)) link_.wait(lane, event);
}

}  // namespace optim_offload::transfer
