# weft_tests: all csrc/**/*_test.cpp in one program; `weft_tests layout` runs the tests so named.
weft_sources(test_sources "*_test.cpp" core ${upper_layers})
if(WEFT_SANITIZE STREQUAL "thread")
  # weft_tests_threads_* below need none of the operators' own tests, a third of the build.
  list(FILTER test_sources EXCLUDE REGEX "csrc/ops/")
endif()
add_executable(weft_tests csrc/testing.cpp ${test_sources})
# Their helpers have the same names, for the same things said differently.
set_source_files_properties(csrc/ops/matmul_test.cpp csrc/ops/backend_test.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(weft_tests PRIVATE weft Threads::Threads)
target_compile_options(weft_tests PRIVATE -O1)  # checks need no optimizer; they build twice as fast
target_precompile_headers(weft_tests PRIVATE
  <cmath> <functional> <memory> <optional> <sstream> <string> <thread> <vector>
  "${PROJECT_SOURCE_DIR}/csrc/core/tensor.h" "${PROJECT_SOURCE_DIR}/csrc/testing.h")
if(TARGET weft_generated)
  add_dependencies(weft_tests weft_generated)  # generated headers first
endif()

# Damaged files for libweft's readers, made in process.
add_executable(weft_fuzz csrc/testing_fuzz.cpp)
target_link_libraries(weft_fuzz PRIVATE weft)
target_compile_options(weft_fuzz PRIVATE -O1)
if(TARGET weft_generated)
  add_dependencies(weft_fuzz weft_generated)
endif()

enable_testing()
add_test(NAME weft_fuzz COMMAND weft_fuzz --count 5000)
add_test(NAME weft_tests COMMAND weft_tests)
# Those whose threads share more than the parts of one result: what the thread sanitizer has time
# for, in two processes.
add_test(NAME weft_tests_threads_core COMMAND weft_tests thread fork pool region shared
  semaphore cache watch allocator mutex)
add_test(NAME weft_tests_threads_above COMMAND weft_tests generator autograd future interpreter capi fused
  random)
# Products and convolutions take other ways on machines with narrower registers, or without AMX.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  return()
endif()
foreach(isa v2 v3 v4)
  foreach(tests blas matmul conv)
    add_test(NAME weft_tests_${isa}_${tests} COMMAND weft_tests ${tests})
    set_tests_properties(weft_tests_${isa}_${tests} PROPERTIES ENVIRONMENT WEFT_ISA=${isa})
  endforeach()
endforeach()
