#pragma once

#include <cstdint>

#include <c10/core/Allocator.h>

namespace optim_offload::testing {

/// While one lives, tensors on the CPU get their memory as before, but the `nth` allocation (from
/// 1) of this thread throws c10::OutOfMemoryError, "planned fault (tensor memory)".
class FailingMemory : private c10::Allocator {
 public:
  explicit FailingMemory(int64_t nth);
  ~FailingMemory() override;
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// Whether that allocation came.
  bool hit() const { return calls_ >= nth_; }

 private:
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override;

  c10::Allocator* sound_;
  int64_t nth_;
  int64_t calls_ = 0;
};

}  // namespace optim_offload::testing
