#pragma once

#include <exception>

#include <c10/util/Exception.h>

/// TORCH_CHECK with the library's prefix: `[optim_offload] what happened (values); what to do`.
#define OFFLOAD_CHECK(condition, ...) TORCH_CHECK(condition, "[optim_offload] ", __VA_ARGS__)

namespace optim_offload {

/// What an error says, without the backtrace that LibTorch's carry.
inline const char* message_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

}  // namespace optim_offload
