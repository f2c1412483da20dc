// The entry of libFuzzer; FUZZ_TARGET is the function of targets.h that it feeds.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>

#include "fuzz/targets.h"

// LibTorch's zip reader keeps what it has allocated of an archive that it refuses.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libtorch_cpu.so\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    optim_offload::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::cerr << "fault: " << error.what() << std::endl;
    __builtin_trap();
  }
  return 0;
}
