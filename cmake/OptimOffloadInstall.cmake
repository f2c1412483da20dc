# `cmake --install`: headers, the library, offload-train, and a package for find_package().
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/optim_offload")

install(DIRECTORY include/optim_offload DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  TARGETS optim_offload
  EXPORT optim_offloadTargets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(
  EXPORT optim_offloadTargets
  NAMESPACE optim_offload::
  DESTINATION "${_package}")
if(TARGET offload-train)
  # The libraries may lie in lib or lib64, and are shared where BUILD_SHARED_LIBS says so.
  set_target_properties(offload-train PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS offload-train RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

configure_package_config_file(
  cmake/optim_offloadConfig.cmake.in "${PROJECT_BINARY_DIR}/optim_offloadConfig.cmake"
  INSTALL_DESTINATION "${_package}")
# Until 1.0, a minor version may change the API.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/optim_offloadConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/optim_offloadConfig.cmake"
        "${PROJECT_BINARY_DIR}/optim_offloadConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/OptimOffloadTorch.cmake"
  DESTINATION "${_package}")
