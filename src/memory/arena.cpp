#include "memory/arena.h"

#include <algorithm>
#include <system_error>

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include "fault.h"
#include "memory/slab.h"

namespace optim_offload::memory {
namespace {

// Large enough that a piece seldom crosses two slabs, small enough that the first is there soon.
constexpr size_t kSlabBytes = size_t{1} << 30;

/// As std::async does.
void throw_if_no_thread() {
  if (!fault_due(FaultSite::Thread)) return;
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

}  // namespace

size_t extent_bytes(at::IntArrayRef sizes, at::IntArrayRef strides, size_t itemsize) {
  size_t last = 0;  // index of the last element
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += static_cast<size_t>((sizes[d] - 1) * strides[d]);
  }
  return (last + 1) * itemsize;
}

size_t extent_bytes(const at::Tensor& tensor) {
  return extent_bytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

at::Tensor Arena::allocate(at::IntArrayRef sizes, at::IntArrayRef strides,
                           const at::TensorOptions& options, LockFor lock_for) {
  const auto host = options.device(at::kCPU).requires_grad(false);
  const size_t bytes = align_up(extent_bytes(sizes, strides, host.dtype().itemsize()));
  if (bytes == 0) return at::empty_strided(sizes, strides, host);  // nothing to rest

  const Block block = take(bytes, lock_for);
  ++allocated_since_;
  return at::from_blob(
      block.data, sizes, strides, [block, bytes](void*) { block.slab->free(block.data, bytes); },
      host);
}

Arena::Block Arena::take(size_t bytes, LockFor lock_for) {
  // The newest slab first: that is where the neighbours are.
  for (auto slab = slabs_.rbegin(); slab != slabs_.rend(); ++slab) {
    if ((*slab)->lock_for() != lock_for) continue;
    if (std::byte* data = (*slab)->allocate(bytes)) return {*slab, data};
  }
  slabs_.push_back(new_slab(bytes, lock_for));
  return {slabs_.back(), slabs_.back()->allocate(bytes)};
}

std::shared_ptr<Slab> Arena::new_slab(size_t bytes, LockFor lock_for) {
  std::vector<size_t> upcoming;
  if (forecast_) upcoming = forecast_();
  upcoming.erase(upcoming.begin(), upcoming.begin() + static_cast<ptrdiff_t>(std::min(
                                                          allocated_since_, upcoming.size())));
  if (upcoming.empty() || upcoming.front() != bytes)
    upcoming = {bytes};  // it foresaw something else

  auto next = upcoming.begin();
  const auto take_slab = [&] {
    size_t size = *next++;
    while (next != upcoming.end() && size + *next <= kSlabBytes) size += *next++;
    return size;
  };
  const size_t size = take_slab();
  std::shared_ptr<Slab> slab;
  if (next_.valid() && next_lock_for_ == lock_for) {
    slab = next_.get();
    if (slab->size() < bytes) slab = nullptr;
  }
  if (slab == nullptr) slab = std::make_shared<Slab>(size, lock_for, pin_);
  if (next != upcoming.end() && !next_.valid()) {
    next_lock_for_ = lock_for;
    try {
      throw_if_no_thread();
      next_ = std::async(std::launch::async, [later = take_slab(), lock_for, pin = pin_] {
        return std::make_shared<Slab>(later, lock_for, pin);
      });
    } catch (const std::system_error&) {
      // The process may have no more threads; the slab is then made when it is needed.
    }
  }
  return slab;
}

void Arena::trim() noexcept {
  if (!forecast_ && !next_.valid()) return;
  forecast_ = nullptr;
  if (next_.valid()) {
    try {
      next_.get();
    } catch (const std::exception&) {
      // It was not needed, so neither is its failure.
    }
  }
  std::erase_if(slabs_, [](const auto& slab) { return slab->empty(); });
}

bool Arena::owns(const void* data) const {
  return std::any_of(slabs_.begin(), slabs_.end(),
                     [&](const auto& slab) { return slab->contains(data); });
}

size_t Arena::locked_bytes() const {
  size_t bytes = 0;
  for (const auto& slab : slabs_) bytes += slab->locked() ? slab->size() : 0;
  return bytes;
}

size_t Arena::pageable_bytes() const {
  size_t bytes = 0;
  for (const auto& slab : slabs_) bytes += slab->locked() ? 0 : slab->size();
  return bytes;
}

}  // namespace optim_offload::memory
