#pragma once

#include <cstddef>
#include <string>

namespace optim_offload::memory {

/// For whose copies host memory is locked.
enum class LockFor {
  Nobody,     ///< Stays pageable.
  Cuda,       ///< Registered with the CUDA driver, for all devices.
  Simulated,  ///< Counts as locked; nothing is done.
};

/// Locks [data, data + bytes), page-aligned. False, with the reason in `why`, where the system
/// refuses; a CUDA error that this leaves behind is cleared.
bool lock_pages(LockFor lock_for, void* data, size_t bytes, std::string& why);

/// Undoes lock_pages(). Never throws; silent after the driver has shut down.
void unlock_pages(LockFor lock_for, void* data) noexcept;

/// The CUDA side; present in CUDA builds alone.
bool lock_pages_cuda(void* data, size_t bytes, std::string& why);
void unlock_pages_cuda(void* data) noexcept;

}  // namespace optim_offload::memory
