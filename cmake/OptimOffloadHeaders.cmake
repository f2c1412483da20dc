# Header-only libraries. Found by their header, not by their package files, so that a folder of
# unpacked packages serves too: name it in CMAKE_PREFIX_PATH (with /usr at its end) or
# CMAKE_INCLUDE_PATH.

# Sets OPTIM_OFFLOAD_<name>_INCLUDE_DIR, or stops with the Debian package to install.
function(_optim_offload_find_header name header package)
  find_path(OPTIM_OFFLOAD_${name}_INCLUDE_DIR ${header} ${ARGN})
  mark_as_advanced(OPTIM_OFFLOAD_${name}_INCLUDE_DIR)
  if(NOT OPTIM_OFFLOAD_${name}_INCLUDE_DIR)
    message(FATAL_ERROR "[optim_offload] ${header} not found; install ${package} (scripts/setup "
                        "does), or name its folder in CMAKE_INCLUDE_PATH")
  endif()
endfunction()

# toml11 keeps toml.hpp at the top; so does toml++, which is another library in a folder of its own.
_optim_offload_find_header(TOML11 toml.hpp libtoml11-dev PATH_SUFFIXES toml11)
if(OPTIM_OFFLOAD_TRAINER)
  _optim_offload_find_header(CLI11 CLI/CLI.hpp libcli11-dev)
  _optim_offload_find_header(JSON nlohmann/json.hpp nlohmann-json3-dev)
  _optim_offload_find_header(XXHASH xxhash.h libxxhash-dev)
endif()
if(OPTIM_OFFLOAD_NVTX)
  file(GLOB _nvtx_hints "${OPTIM_OFFLOAD_TORCH_ROOT}/../nvidia/*/include")
  _optim_offload_find_header(
    NVTX nvtx3/nvtx3.hpp "the wheel nvidia-nvtx or a CUDA Toolkit" HINTS
    ${OPTIM_OFFLOAD_TORCH_CUDA_INCLUDE_DIR} ${_nvtx_hints} PATHS /usr/local/cuda/include)
endif()
