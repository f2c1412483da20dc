# `cmake -P`, for the scripts: prints the torch that a build would use, as "FROM FLAVOUR ROOT", or
# nothing.
include("${CMAKE_CURRENT_LIST_DIR}/OptimOffloadTorch.cmake")
optim_offload_locate_torch("" root from)
if(root)
  _optim_offload_torch_flavour("${root}" flavour)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${from} ${flavour} ${root}")
endif()
