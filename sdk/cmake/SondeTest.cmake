# Registers a GoogleTest executable with ctest, one ctest test for each case.
#
#   sonde_add_test(NAME SOURCES file... [LIBS target...] [DEFINITIONS def...] [ENVIRONMENT VAR=value...]
#                  [LABELS label...] [TIMEOUT seconds] [SERIAL] [SANITIZED] [NO_MAIN])
#
# The target is sonde_test_NAME, the executable bin/tests/NAME, the ctest names NAME.Suite.Case. The label `unit` is
# always there. A test that links no more of Sonde than sonde_core, sonde_store and sonde_layout (or that says SANITIZED) belongs to the
# target `sanitized_tests`, which tests/run.sh builds once with ASan + UBSan and once with TSan; there an executable is
# one ctest test.
#
#   sonde_add_fuzzer(NAME SOURCES file... [LIBS target...])
#
# makes bin/fuzz/NAME, a libFuzzer executable (preset fuzz), with its seeds in the folder NAME.corpus beside the caller.
include_guard(GLOBAL)
include(GoogleTest)

if(NOT TARGET sanitized_tests)
  add_custom_target(sanitized_tests)
endif()
if(NOT TARGET fuzzers)
  add_custom_target(fuzzers)
endif()

function(sonde_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;SANITIZED;NO_MAIN" "TIMEOUT"
    "SOURCES;LIBS;DEFINITIONS;ENVIRONMENT;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sonde_add_test(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT SONDE_BUILD_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()

  set(target sonde_test_${name})
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  target_link_libraries(${target} PRIVATE ${arg_LIBS} sonde_headers GTest::gtest Threads::Threads)
  # Half of the time of a build is spent on tests, which need not be fast themselves.
  target_compile_options(${target} PRIVATE -O1)
  if(NOT arg_NO_MAIN)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  target_compile_definitions(${target} PRIVATE
    SONDE_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    SONDE_TEST_BINARY_DIR="${PROJECT_BINARY_DIR}"
    ${arg_DEFINITIONS})

  set(properties TIMEOUT ${arg_TIMEOUT})
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${target}
    TEST_PREFIX "${name}."
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES ${properties})
  # gtest_discover_tests takes values apart at `;`, so lists are set afterwards, when ctest reads its files.
  set(list_properties ${CMAKE_CURRENT_BINARY_DIR}/${target}_properties.cmake)
  file(CONFIGURE OUTPUT ${list_properties} @ONLY CONTENT [[
foreach(test IN LISTS @target@_TESTS)
  set_tests_properties("${test}" PROPERTIES LABELS "unit;@arg_LABELS@" ENVIRONMENT "@arg_ENVIRONMENT@")
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list_properties})

  set(internals ${arg_LIBS})
  list(FILTER internals INCLUDE REGEX "^sonde")
  list(REMOVE_ITEM internals sonde_internal sonde_headers)
  set(others ${internals})
  list(REMOVE_ITEM others sonde_core sonde_store sonde_layout)
  if(arg_SANITIZED OR (internals AND NOT others))
    add_dependencies(sanitized_tests ${target})
    set_property(GLOBAL APPEND PROPERTY SONDE_SANITIZED_TESTS ${name})
  endif()
endfunction()

function(sonde_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  if(NOT SONDE_BUILD_FUZZERS)
    return()
  endif()
  set(target sonde_fuzz_${name})
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/fuzz)
  target_link_libraries(${target} PRIVATE ${arg_LIBS} sonde_headers Threads::Threads)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${target})
endfunction()
