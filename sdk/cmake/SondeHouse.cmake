# What holds for every target of the tree: options, language levels, warnings, places of outputs.
include_guard(GLOBAL)

option(SONDE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SONDE_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(SONDE_BUILD_SAMPLES "Build the samples" ${PROJECT_IS_TOP_LEVEL})
option(SONDE_BUILD_PYTHON "Build the Python module" ON)
option(SONDE_BUILD_FUZZERS "Build the fuzzers; needs clang" OFF)
set(SONDE_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")
set(SONDE_COVERAGE OFF CACHE BOOL "Instrument for coverage (gcov)")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

add_compile_options(-Wall -Wextra -Wpedantic)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns falsely inside std::string (GCC bug 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# Assertions stay on in RelWithDebInfo: it is the build that the tests run. Release turns them off.
foreach(language C CXX)
  string(REPLACE "-DNDEBUG" "" CMAKE_${language}_FLAGS_RELWITHDEBINFO
    "${CMAKE_${language}_FLAGS_RELWITHDEBINFO}")
endforeach()

if(SONDE_SANITIZE)
  add_compile_options(-fsanitize=${SONDE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SONDE_SANITIZE})
  if(SONDE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from GCC 12 that an optional is asked before it is read. Other builds keep the warning.
    add_compile_options(-Wno-error=maybe-uninitialized)
  endif()
  if(SONDE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The sanitizer does not model atomic_thread_fence; GCC warns at each one.
    add_compile_options(-Wno-error=tsan)
  endif()
endif()
if(SONDE_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
if(SONDE_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

find_program(SONDE_CCACHE ccache)
mark_as_advanced(SONDE_CCACHE)
if(SONDE_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${SONDE_CCACHE})
    endif()
  endforeach()
endif()

# The build tree has the shape of an installed tree (bin, lib, lib/sonde/plugins, lib/sonde/ports), so that libsonde
# finds its plugins relative to itself in both. A module's own folder is short: <build>/plugins, <build>/ports.
set(SONDE_PLUGIN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/plugins)
set(SONDE_PORT_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/ports)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/sonde)
file(CREATE_LINK ../../plugins ${PROJECT_BINARY_DIR}/lib/sonde/plugins SYMBOLIC)
file(CREATE_LINK ../../ports ${PROJECT_BINARY_DIR}/lib/sonde/ports SYMBOLIC)

# Places in an installed tree, relative to the prefix. `lib` without a multiarch part: the tree is relocatable and the
# same in every package.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Folder of libraries, relative to the prefix")
include(GNUInstallDirs)
set(SONDE_INSTALL_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/sonde/plugins)
set(SONDE_INSTALL_PORT_DIR ${CMAKE_INSTALL_LIBDIR}/sonde/ports)
set(SONDE_INSTALL_LUA_DIR ${CMAKE_INSTALL_LIBDIR}/sonde/lua/5.4)
set(SONDE_INSTALL_PYTHON_DIR ${CMAKE_INSTALL_LIBDIR}/sonde/python)
set(SONDE_INSTALL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Sonde)
set(SONDE_INSTALL_DATA_DIR ${CMAKE_INSTALL_DATADIR}/sonde)
set(SONDE_INSTALL_DOC_DIR ${CMAKE_INSTALL_DATADIR}/doc/sonde)

# Run path of a target that installs into `folder`, so that it finds the shared objects in lib: $ORIGIN when that is
# lib itself.
function(sonde_set_install_rpath target folder)
  file(RELATIVE_PATH up /prefix/${folder} /prefix/${CMAKE_INSTALL_LIBDIR})
  string(REGEX REPLACE "/$" "" up "${up}")
  if(up)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${up}")
  else()
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
  endif()
endfunction()

# Headers for everybody: what a host, a plugin and the toolkit include.
add_library(sonde_headers INTERFACE)
add_library(Sonde::headers ALIAS sonde_headers)
set_target_properties(sonde_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(sonde_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# What an object library of the SDK sees: the public headers and the folder sdk.
add_library(sonde_internal INTERFACE)
target_include_directories(sonde_internal INTERFACE ${PROJECT_SOURCE_DIR}/sdk)
target_link_libraries(sonde_internal INTERFACE sonde_headers)
