# What all targets of this project have in common.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo or MinSizeRel" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
# The time of a step is in copies and in torch's own kernels: -O3 would only cost compile time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# One precompiled header (60 s, 0.7 GB of memory) serves libraries and executables, which needs the
# same flags everywhere, so executables are compiled with -fPIC as well.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "-fPIC")

# An installed offload-train finds torch where the build found it.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

find_package(Threads REQUIRED)

# ccache must take the precompiled header on trust, by its time and size. The base folder lets builds of
# two clones share results.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(_launcher
      env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      CCACHE_NOHASHDIR=1
      ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Warnings, the private definitions and include folders, and the precompiled header, which the first
# target (the library) makes and all others take over.
function(optim_offload_configure_target target)
  # What is not marked OPTIM_OFFLOAD_EXPORT is hidden; everywhere, for the precompiled header's sake.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(OPTIM_OFFLOAD_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(OPTIM_OFFLOAD_CUDA)
    target_compile_definitions(${target} PRIVATE OPTIM_OFFLOAD_CUDA=1)
  endif()
  if(OPTIM_OFFLOAD_NVTX)
    target_compile_definitions(${target} PRIVATE OPTIM_OFFLOAD_NVTX=1)
    target_include_directories(${target} SYSTEM PRIVATE ${OPTIM_OFFLOAD_NVTX_INCLUDE_DIR})
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  endif()
  # Tests spend their time in the library and in torch: a quarter less time to compile.
  if(target MATCHES "_tests$")
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
    # Under both sanitizers a test's file takes three times as long to compile as under
    # AddressSanitizer alone; undefined behaviour is looked for in the library.
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  if(DEFINED _launcher)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${_launcher}")
  endif()
  if(target STREQUAL "optim_offload")
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/pch.h")
  else()
    target_precompile_headers(${target} REUSE_FROM optim_offload)
  endif()
endfunction()
