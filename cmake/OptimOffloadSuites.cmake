# One ctest entry per test suite. A program that links torch takes a second or two to start, so that
# an entry per test case (gtest_discover_tests) would spend minutes on starting.

# Has ctest ask `target` for its suites each time it runs, when the program surely exists.
function(optim_offload_discover_suites target)
  set(include_file "${CMAKE_CURRENT_BINARY_DIR}/${target}_$<CONFIG>_suites.cmake")
  file(
    GENERATE
    OUTPUT "${include_file}"
    CONTENT
      "set(suites_target [==[${target}]==])
set(suites_program [==[$<TARGET_FILE:${target}>]==])
set(suites_folder [==[${CMAKE_CURRENT_BINARY_DIR}]==])
include([==[${PROJECT_SOURCE_DIR}/cmake/ListSuites.cmake]==])
")
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(multi_config)
    # ctest knows the configuration only when it runs.
    string(REPLACE "$<CONFIG>" "\${CTEST_CONFIGURATION_TYPE}" include_file "${include_file}")
    set(chooser "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
    file(WRITE "${chooser}" "include(\"${include_file}\")\n")
    set(include_file "${chooser}")
  else()
    string(REPLACE "$<CONFIG>" "${CMAKE_BUILD_TYPE}" include_file "${include_file}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include_file}")
endfunction()
