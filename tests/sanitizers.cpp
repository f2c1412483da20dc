// Settings that the sanitizers' runtimes ask the program for, so that a test run by hand has them
// too. torch itself is not built with sanitizers.

// The runtimes are shared libraries, which find nothing that is hidden.
#pragma GCC visibility push(default)

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  // CUDA maps memory where the sanitizer keeps its shadow gap.
  return "protect_shadow_gap=0";
}

// LibTorch's zip reader keeps what it has allocated of an archive that it refuses.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:mz_zip_reader_\n"; }
#endif

#pragma GCC visibility pop
