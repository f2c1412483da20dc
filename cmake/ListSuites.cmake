# Read by ctest, not by cmake: adds the entries of one test program, `suites_program`.
#
# Suites that differ only in their parameters (Prefix/Suite, Suite/0) share the entry `Suite`. Cases
# whose names end in _CUDA get an entry of their own, `Suite_CUDA`, which counts as skipped where
# all of them skip, so that a machine without a GPU shows what it did not run.

if(NOT EXISTS "${suites_program}")
  add_test("${suites_target}_NOT_BUILT" "${suites_program}")
  return()
endif()

execute_process(
  COMMAND "${suites_program}" --gtest_list_tests
  OUTPUT_VARIABLE listing
  ERROR_VARIABLE errors
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${suites_program} --gtest_list_tests failed (${result}):\n${listing}${errors}")
endif()

# Brackets and semicolons in parameter descriptions would confuse CMake's lists.
string(REGEX REPLACE "#[^\n]*" "" listing "${listing}")
string(REGEX REPLACE "[][;]" "_" listing "${listing}")
string(REPLACE "\n" ";" listing "${listing}")

set(suites "")
set(suites_cuda "")
foreach(line IN LISTS listing)
  if(line MATCHES "^([^ ]+)\\.")
    set(suite "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "/[0-9]+$" "" suite "${suite}")
    string(REGEX REPLACE "^.*/" "" suite "${suite}")
  elseif(line MATCHES "^  +[^ ]*_CUDA(/.*)? *$")
    list(APPEND suites_cuda "${suite}")
  elseif(line MATCHES "^  +[^ ]")
    list(APPEND suites "${suite}")
  endif()
endforeach()
list(REMOVE_DUPLICATES suites)
list(REMOVE_DUPLICATES suites_cuda)

# One thread per test: ctest runs several at once, and small tensors gain nothing from more.
set(common
    WORKING_DIRECTORY "${suites_folder}"
    ENVIRONMENT "OMP_NUM_THREADS=1"
    TIMEOUT 900
    SKIP_RETURN_CODE 77)

foreach(suite IN LISTS suites)
  add_test("${suite}" "${suites_program}"
           "--gtest_filter=${suite}.*:*/${suite}.*:${suite}/*.*:*/${suite}/*.*-*_CUDA:*_CUDA/*")
  set_tests_properties("${suite}" PROPERTIES ${common})
endforeach()
foreach(suite IN LISTS suites_cuda)
  set(filter "")
  foreach(name "${suite}" "*/${suite}" "${suite}/*" "*/${suite}/*")
    string(APPEND filter "${name}.*_CUDA:${name}.*_CUDA/*:")
  endforeach()
  add_test("${suite}_CUDA" "${suites_program}" "--gtest_filter=${filter}")
  # One at a time: they measure the memory of the GPU.
  set_tests_properties("${suite}_CUDA" PROPERTIES ${common} LABELS cuda RUN_SERIAL TRUE)
endforeach()
