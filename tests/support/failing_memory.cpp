#include "support/failing_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace optim_offload::testing {
namespace {

thread_local bool this_thread_fails = false;

}  // namespace

FailingMemory::FailingMemory(int64_t nth) : sound_(c10::GetCPUAllocator()), nth_(nth) {
  this_thread_fails = true;
  c10::SetCPUAllocator(this, /*priority=*/100);
}

FailingMemory::~FailingMemory() {
  c10::SetCPUAllocator(sound_, /*priority=*/100);
  this_thread_fails = false;
}

c10::DataPtr FailingMemory::allocate(size_t bytes) {
  if (this_thread_fails) {
    TORCH_CHECK_WITH(OutOfMemoryError, ++calls_ != nth_, "planned fault (tensor memory)");
  }
  return sound_->allocate(bytes);
}

c10::DeleterFnPtr FailingMemory::raw_deleter() const { return sound_->raw_deleter(); }

void FailingMemory::copy_data(void* to, const void* from, size_t bytes) const {
  default_copy_data(to, from, bytes);
}

}  // namespace optim_offload::testing
