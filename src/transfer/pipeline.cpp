#include "transfer/pipeline.h"

#include <exception>

#include "error.h"
#include "transfer/nvtx.h"

namespace optim_offload::transfer {
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
    link_.wait(Lane::H2D, *started_, WaitPoint::SlotsAllocated);
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
  if (slot.used) link_.wait(Lane::H2D, *slot.drained, WaitPoint::SlotFree);
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
    if (slot.job->holds_memory()) {
      link_.wait(Lane::Compute, *slot.drained, WaitPoint::NewStateHome);
    }
    slot.job->retire();
  }
  slot.job = &job;
  if (!job.uploads().empty()) {
    link_.wait(Lane::Compute, *slot.arrived, WaitPoint::StateArrived);
  }

  OFFLOAD_NVTX_RANGE(job.name());
  probe(job, Stage::Step, true);
  for (const Copy& copy : job.uploads()) link_.uses(Lane::Compute, copy.dst, copy.bytes, "a step");
  const auto copies = job.compute();
  for (const Copy& copy : copies) link_.uses(Lane::Compute, copy.src, copy.bytes, "a step");
  link_.record(Lane::Compute, *slot.stepped);
  probe(job, Stage::Step, false);

  link_.wait(Lane::D2H, *slot.stepped, WaitPoint::PieceStepped);
  probe(job, Stage::Download, true);
  if (!copies.empty()) link_.copy(Lane::D2H, Direction::ToHost, copies);
  link_.record(Lane::D2H, *slot.drained);
  job.downloads_queued();
  probe(job, Stage::Download, false);
  slot.used = true;

  // Beside allocated slots, memory of a piece's own would add up to twice the bound: give it back
  // before the next piece makes more.
  if (slots_allocated_ && job.holds_memory()) {
    link_.wait(Lane::Compute, *slot.drained, WaitPoint::MemoryFree);
    job.retire();
  }
}

void Pipeline::drain() {
  while (!waiting_.empty()) compute_oldest();
}

void Pipeline::finish() {
  drain();
  link_.synchronize(Lane::D2H, WaitPoint::CopiesDone);
  for (Slot& slot : slots_) {
    if (slot.job != nullptr) slot.job->retire();
    slot.job = nullptr;
  }
}

bool Pipeline::abort() noexcept {
  bool waited = true;
  const auto end = [&](Lane lane, WaitPoint point) {
    try {
      link_.synchronize(lane, point);
    } catch (const std::exception& error) {
      TORCH_WARN("[optim_offload] could not wait for copies after a failed step (",
                 message_of(error),
                 "); the device is likely lost: end the process and resume from a checkpoint");
      waited = false;
    }
  };
  end(Lane::H2D, WaitPoint::UploadsEnded);
  end(Lane::D2H, WaitPoint::DownloadsEnded);
  waiting_.clear();
  // Jobs keep their memory: what a failed one left there may still have to be brought home.
  for (Slot& slot : slots_) slot.job = nullptr;
  return waited;
}

}  // namespace optim_offload::transfer
