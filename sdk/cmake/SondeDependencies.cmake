# Libraries of others, each under one imported target. Targets:
#   Threads::Threads  fmt::fmt  CLI11::CLI11  nlohmann_json::nlohmann_json  Boost::boost (headers)
#   Sonde::yaml-cpp  Sonde::zstd  Sonde::xxhash  Sonde::ffi  Sonde::lua (Lua 5.4, the C++ build)
#   GTest::gtest_main (tests)  benchmark::benchmark (benchmarks)  Python3 (bindings, tests)
include_guard(GLOBAL)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(Python3 3.9 COMPONENTS Interpreter)

# Makes the target Sonde::<name> from the pkg-config module `module`.
function(sonde_find_module name module)
  pkg_check_modules(sonde_${name} REQUIRED IMPORTED_TARGET ${module})
  add_library(Sonde::${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(Sonde::${name} INTERFACE PkgConfig::sonde_${name})
  set_target_properties(PkgConfig::sonde_${name} PROPERTIES IMPORTED_GLOBAL TRUE)
endfunction()

sonde_find_module(zstd libzstd)
sonde_find_module(xxhash libxxhash)
sonde_find_module(ffi libffi)
sonde_find_module(lua lua5.4-c++)

add_library(Sonde::yaml-cpp INTERFACE IMPORTED GLOBAL)
target_link_libraries(Sonde::yaml-cpp INTERFACE yaml-cpp)

if(SONDE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(SONDE_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
