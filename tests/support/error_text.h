#pragma once

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>

namespace optim_offload {

/// The message of the c10::Error that `call` throws, without its backtrace; "" and a failure if it
/// throws none.
template <typename Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  ADD_FAILURE() << "no c10::Error was thrown";
  return {};
}

/// Expects `part` within `text`.
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace optim_offload
