#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

namespace optim_offload::fuzz {

// Each takes one input of any bytes. What it must not do, besides what sanitizers see: throw. Input
// that is refused with a c10::Error is no fault; any other exception, or a broken promise, is one
// and passes through.

/// A settings file of offload-train and, after each zero byte, one override `key=value`. Settings
/// that are accepted must make an optimizer.
void settings(std::string_view input);

/// Changes to the archive that a wrapper saved, which is then loaded into its twin; see
/// archive_edits.h. A refused archive must leave the optimizer as it was, bit by bit, and able to
/// step. Edits of its bytes are none of these: LibTorch's reader, which is not safe against them,
/// comes before anything of this library.
void archive(std::string_view input);

/// A trainer's checkpoint in which one file, chosen by the first byte, has the bytes that follow,
/// or, where the first byte is from 128 on, has these edits of its bytes. A changed archive must be
/// refused by its checksum, before LibTorch reads it.
void checkpoint(std::string_view input);

struct BrokenPromise : std::logic_error {
  using std::logic_error::logic_error;
};

inline void promise(bool kept, const std::string& what) {
  if (!kept) throw BrokenPromise(what);
}

/// Whether `call` takes its input. Errors of its caller's kind are the proper way to refuse it.
template <typename Call>
bool accepts(Call&& call) {
  try {
    call();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace optim_offload::fuzz
