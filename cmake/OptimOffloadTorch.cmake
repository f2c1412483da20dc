# Finds LibTorch, and makes the imported target optim_offload::torch. Also part of the installed
# package, where the config file calls it.
#
# The library has no kernels of its own, so the headers and shared objects of a wheel or of a
# LibTorch zip are enough; `find_package(Torch)` is not used, because for a CUDA torch it wants nvcc,
# and for C++20 a CUDA language dialect that no nvcc needs here.

# The torch of python3 and of the set-up's cache must be of this series, with which CI and the figures
# for GPUs are made.
set(OPTIM_OFFLOAD_TORCH_SERIES 2.11)
set(OPTIM_OFFLOAD_TORCH_PINNED 2.11.0)
# One that the user names may be any from the oldest to the newest that `make matrix` has passed with;
# others with a warning.
set(OPTIM_OFFLOAD_TORCH_OLDEST 2.6)
set(OPTIM_OFFLOAD_TORCH_NEWEST 2.15)

# Sets `out` to the version of the torch in `root` (`<root>/include`, `<root>/lib`), or to "".
function(_optim_offload_torch_version root out)
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    set(header "${root}/include/${header}")
    if(version STREQUAL "" AND EXISTS "${header}" AND EXISTS "${root}/lib/libtorch_cpu.so")
      file(STRINGS "${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
      list(JOIN numbers "." version)
    endif()
  endforeach()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Sets `out` to cuda or cpu. The CPU flavour of the set-up is a CUDA wheel without cuBLAS and the other
# libraries that its CUDA side loads; a zip carries them itself.
function(_optim_offload_torch_flavour root out)
  set(${out} cpu PARENT_SCOPE)
  get_filename_component(site "${root}/.." ABSOLUTE)
  file(GLOB cublas "${site}/nvidia/*/lib/libcublas.so.*")
  if(EXISTS "${root}/lib/libtorch_cuda.so" AND (cublas OR NOT EXISTS "${site}/nvidia"))
    set(${out} cuda PARENT_SCOPE)
  endif()
endfunction()

# What the user gives: Torch_DIR or CMAKE_PREFIX_PATH, as variables or from the environment.
function(_optim_offload_torch_of_user out)
  set(${out} "" PARENT_SCOPE)
  set(folders ${Torch_DIR} $ENV{Torch_DIR} ${CMAKE_PREFIX_PATH})
  string(REPLACE ":" ";" from_env "$ENV{CMAKE_PREFIX_PATH}")
  list(APPEND folders ${from_env})
  foreach(folder IN LISTS folders)
    # Torch_DIR ends in share/cmake/Torch, torch.utils.cmake_prefix_path in share/cmake.
    foreach(up "" /torch /../../.. /../..)
      get_filename_component(root "${folder}${up}" ABSOLUTE)
      _optim_offload_torch_version("${root}" version)
      if(version)
        set(${out} "${root}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  if(Torch_DIR OR NOT "$ENV{Torch_DIR}" STREQUAL "")
    message(WARNING "[optim_offload] Torch_DIR (${Torch_DIR}$ENV{Torch_DIR}) has no LibTorch; looking "
                    "elsewhere")
  endif()
endfunction()

function(_optim_offload_torch_of_python out)
  set(${out} "" PARENT_SCOPE)
  find_program(OPTIM_OFFLOAD_PYTHON python3)
  mark_as_advanced(OPTIM_OFFLOAD_PYTHON)
  if(NOT OPTIM_OFFLOAD_PYTHON)
    return()
  endif()
  # find_spec looks for the package and does not import it, which would take seconds.
  execute_process(
    COMMAND "${OPTIM_OFFLOAD_PYTHON}" -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
  _optim_offload_torch_version("${root}" version)
  if(NOT version MATCHES "^${OPTIM_OFFLOAD_TORCH_SERIES}\\.")
    return()
  endif()
  _optim_offload_torch_flavour("${root}" flavour)
  if("$ENV{TORCH}" STREQUAL "" OR "$ENV{TORCH}" STREQUAL flavour)
    set(${out} "${root}" PARENT_SCOPE)
  endif()
endfunction()

# The folder where scripts/setup puts what it makes.
function(_optim_offload_cache out)
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  set(${out} "${cache}/optim_offload" PARENT_SCOPE)
endfunction()

# What scripts/setup made, so that a plain `cmake` works after it.
function(_optim_offload_torch_of_cache out)
  set(${out} "" PARENT_SCOPE)
  _optim_offload_cache(cache)
  set(flavours $ENV{TORCH})
  if(NOT flavours AND EXISTS /dev/nvidiactl)
    set(flavours cuda cpu)
  elseif(NOT flavours)
    set(flavours cpu cuda)
  endif()
  foreach(flavour IN LISTS flavours)
    file(GLOB roots
         "${cache}/torch-${OPTIM_OFFLOAD_TORCH_PINNED}-${flavour}/lib/python3*/site-packages/torch")
    foreach(root IN LISTS roots)
      _optim_offload_torch_version("${root}" version)
      if(version)
        set(${out} "${root}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# CUDA 13's wheels include headers (of the folders crt and nv) that come in wheels of their own, which
# torch does not ask for. Sets `out` to "" where they are in `include`, to the folder in which the
# set-up put them, or to "missing".
function(_optim_offload_extra_cuda_headers include out)
  set(${out} "" PARENT_SCOPE)
  if(EXISTS "${include}/crt/host_defines.h" AND EXISTS "${include}/nv/target")
    return()
  endif()
  _optim_offload_cache(cache)
  file(GLOB extra "${cache}/cuda-headers-*/lib/python3*/site-packages/nvidia/cu*/include")
  if(extra)
    list(GET extra 0 extra)
  else()
    set(extra "missing")
  endif()
  set(${out} "${extra}" PARENT_SCOPE)
endfunction()

# Where the CUDA runtime's headers and library for the torch in `root` are: beside a wheel, else in a
# CUDA Toolkit; the library a zip's own. Both "" where the torch has no CUDA side or one is missing.
function(_optim_offload_cuda_of_torch root out_include out_library)
  set(${out_include} "" PARENT_SCOPE)
  set(${out_library} "" PARENT_SCOPE)
  _optim_offload_torch_flavour("${root}" flavour)
  if(flavour STREQUAL cpu)
    return()
  endif()
  get_filename_component(site "${root}/.." ABSOLUTE)
  file(GLOB include "${site}/nvidia/cu[0-9]*/include/cuda_runtime_api.h"
       "${site}/nvidia/cuda_runtime/include/cuda_runtime_api.h")
  file(GLOB library "${site}/nvidia/cu[0-9]*/lib/libcudart.so.*"
       "${site}/nvidia/cuda_runtime/lib/libcudart.so.*" "${root}/lib/libcudart*.so*")
  if(include)
    list(GET include 0 include)
    get_filename_component(include "${include}" DIRECTORY)
  endif()
  if(include)
    _optim_offload_extra_cuda_headers("${include}" extra)
    if(extra STREQUAL "missing")
      set(include "")
    else()
      list(APPEND include ${extra})
    endif()
  endif()
  if(NOT include OR NOT library)
    find_package(CUDAToolkit QUIET)
    if(CUDAToolkit_FOUND)
      if(NOT include)
        set(include "${CUDAToolkit_INCLUDE_DIRS}")
      endif()
      if(NOT library)
        set(library "${CUDA_CUDART}")
      endif()
    endif()
  endif()
  if(include AND library)
    list(GET library 0 library)
    set(${out_include} "${include}" PARENT_SCOPE)
    set(${out_library} "${library}" PARENT_SCOPE)
  endif()
endfunction()

# Looks in the order: the user's, `fallback` if it is one, python3's, the set-up's. Sets `out_root` to
# the folder with include and lib, or to "", and `out_from` to user, fallback, python or cache.
function(optim_offload_locate_torch fallback out_root out_from)
  set(from user)
  _optim_offload_torch_of_user(root)
  if(NOT root)
    set(from fallback)
    _optim_offload_torch_version("${fallback}" version)
    if(version)
      set(root "${fallback}")
    endif()
  endif()
  if(NOT root)
    set(from python)
    _optim_offload_torch_of_python(root)
  endif()
  if(NOT root)
    set(from cache)
    _optim_offload_torch_of_cache(root)
  endif()
  set(${out_root} "${root}" PARENT_SCOPE)
  set(${out_from} "${from}" PARENT_SCOPE)
endfunction()

# Sets in the caller OPTIM_OFFLOAD_TORCH_{ROOT,FROM,VERSION,HAS_CUDA,CUDA_INCLUDE_DIR,CUDART}. Where
# there is no torch, stops, or, given REASON, sets that variable to why; else that is "".
#
#   optim_offload_find_torch([FALLBACK root] [REASON variable])
function(optim_offload_find_torch)
  cmake_parse_arguments(arg "" "FALLBACK;REASON" "" ${ARGN})
  optim_offload_locate_torch("${arg_FALLBACK}" root from)
  if(NOT root)
    string(
      CONCAT reason
             "no LibTorch found (not in CMAKE_PREFIX_PATH or Torch_DIR; python3 has no torch "
             "${OPTIM_OFFLOAD_TORCH_SERIES}); run scripts/setup once, or pass "
             "-DCMAKE_PREFIX_PATH=<folder of a wheel's torch or of an unpacked LibTorch zip>")
    if(NOT arg_REASON)
      message(FATAL_ERROR "[optim_offload] ${reason}")
    endif()
    set(${arg_REASON} "${reason}" PARENT_SCOPE)
    return()
  endif()
  if(arg_REASON)
    set(${arg_REASON} "" PARENT_SCOPE)
  endif()
  _optim_offload_torch_version("${root}" version)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" series "${version}")
  if(series VERSION_LESS OPTIM_OFFLOAD_TORCH_OLDEST OR series VERSION_GREATER
                                                       OPTIM_OFFLOAD_TORCH_NEWEST)
    message(WARNING "[optim_offload] torch ${version} in ${root} is none of those that this version "
                    "is tested with (${OPTIM_OFFLOAD_TORCH_OLDEST} to ${OPTIM_OFFLOAD_TORCH_NEWEST})")
  endif()
  _optim_offload_cuda_of_torch("${root}" include library)
  set(has_cuda OFF)
  if(include)
    set(has_cuda ON)
  elseif(EXISTS "${root}/lib/libtorch_cuda.so")
    _optim_offload_torch_flavour("${root}" flavour)
    if(flavour STREQUAL cuda)
      message(WARNING "[optim_offload] the torch in ${root} has CUDA, but headers or the runtime of "
                      "CUDA are missing, so the CUDA side is off by default; run scripts/setup, which "
                      "brings them, or install a CUDA Toolkit")
    endif()
  endif()
  set(OPTIM_OFFLOAD_TORCH_ROOT "${root}" PARENT_SCOPE)
  set(OPTIM_OFFLOAD_TORCH_FROM "${from}" PARENT_SCOPE)
  set(OPTIM_OFFLOAD_TORCH_VERSION "${version}" PARENT_SCOPE)
  set(OPTIM_OFFLOAD_TORCH_HAS_CUDA ${has_cuda} PARENT_SCOPE)
  set(OPTIM_OFFLOAD_TORCH_CUDA_INCLUDE_DIR "${include}" PARENT_SCOPE)
  set(OPTIM_OFFLOAD_TORCH_CUDART "${library}" PARENT_SCOPE)
endfunction()

# Makes optim_offload::torch of what optim_offload_find_torch() found, with CUDA or without.
function(optim_offload_add_torch_target with_cuda)
  if(TARGET optim_offload::torch)
    return()
  endif()
  set(root "${OPTIM_OFFLOAD_TORCH_ROOT}")
  if(with_cuda AND NOT OPTIM_OFFLOAD_TORCH_HAS_CUDA)
    message(
      FATAL_ERROR
        "[optim_offload] OPTIM_OFFLOAD_CUDA is ON, but the torch in ${root} cannot be built against "
        "with CUDA (no CUDA side, or its CUDA libraries or headers are missing); pass "
        "-DOPTIM_OFFLOAD_CUDA=OFF, or use a CUDA torch (TORCH=cuda scripts/setup makes one)")
  endif()
  add_library(optim_offload::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(optim_offload::torch INTERFACE "${root}/include"
                                                            "${root}/include/torch/csrc/api/include")
  target_link_libraries(optim_offload::torch INTERFACE "${root}/lib/libtorch_cpu.so"
                                                       "${root}/lib/libc10.so")
  # Wheels before 2.7 have the older std::string of GCC 4; who links to one has to have it too.
  set(config "${root}/share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${config}")
    file(STRINGS "${config}" old_abi REGEX "-D_GLIBCXX_USE_CXX11_ABI=0")
    if(old_abi)
      target_compile_definitions(optim_offload::torch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
    endif()
  endif()
  # libtorch_cpu.so of a CUDA wheel needs libcupti and libcudart, which lie elsewhere.
  get_filename_component(site "${root}/.." ABSOLUTE)
  file(GLOB folders "${site}/nvidia/*/lib")
  foreach(folder IN LISTS folders)
    target_link_options(optim_offload::torch INTERFACE "LINKER:-rpath-link,${folder}")
  endforeach()
  if(with_cuda)
    target_include_directories(optim_offload::torch
                               INTERFACE ${OPTIM_OFFLOAD_TORCH_CUDA_INCLUDE_DIR})
    # Nothing names a symbol of libtorch_cuda.so: it registers its kernels when it is loaded.
    target_link_libraries(
      optim_offload::torch
      INTERFACE "-Wl,--push-state,--no-as-needed,${root}/lib/libtorch_cuda.so,--pop-state"
                "${root}/lib/libc10_cuda.so" "${OPTIM_OFFLOAD_TORCH_CUDART}")
  endif()
endfunction()
