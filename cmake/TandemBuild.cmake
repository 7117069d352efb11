# How Tandem's own code is built: warnings, sanitizers, one object library per module of core/, one test
# program per module. Sources are found by folder, so adding a file needs no edit here.

find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TANDEM_CCACHE})
endif()

add_library(tandem_options INTERFACE)
# False alarms of g++, which clang does not know: -Wrestrict in std::string; -Wdangling-reference (g++ 13) of functions that
# return a reference into one argument and read another one, which is a temporary.
set(gnu $<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>)
set(own_languages $<COMPILE_LANGUAGE:C,CXX>)
target_compile_options(tandem_options INTERFACE
  $<BUILD_INTERFACE:$<${own_languages}:-Wall>> $<BUILD_INTERFACE:$<${own_languages}:-Wextra>>
  $<BUILD_INTERFACE:$<${gnu}:-Wno-restrict>> $<BUILD_INTERFACE:$<${gnu}:-Wno-dangling-reference>>
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wno-restrict>>)
target_compile_features(tandem_options INTERFACE cxx_std_20)
target_include_directories(tandem_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(Tandem::sdk ALIAS tandem_options)
# Instrumented code of libstdc++ raises false alarms of this one.
set(quiet -Wno-maybe-uninitialized)
if(TANDEM_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 ${quiet})
  add_link_options(-fsanitize=address,undefined)
elseif(TANDEM_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -g1 ${quiet})
  add_link_options(-fsanitize=thread)
endif()

# OpenMP for modules: teams of g++'s library, which oneDNN uses, with every compiler (plugins/cpu/team.h), and loops that
# OpenMP's simd directive vectorises.
add_library(tandem_openmp INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # It warns of each loop that it cannot vectorise.
  target_compile_options(tandem_openmp INTERFACE -fopenmp-simd -Wno-pass-failed)
  target_link_libraries(tandem_openmp INTERFACE gomp)
  if(NOT TANDEM_SANITIZE STREQUAL "thread")
    target_compile_definitions(tandem_openmp INTERFACE TANDEM_LIBGOMP)
  endif()
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(tandem_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# tandem_module(base DEPENDS ...): core/<name>/*.cpp as an object library core_<name>.
function(tandem_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(core_${name} OBJECT ${sources})
  target_link_libraries(core_${name} PUBLIC tandem_options fmt::fmt TBB::tbb Threads::Threads ${CMAKE_DL_LIBS})
  set_property(GLOBAL APPEND PROPERTY TANDEM_CORE_MODULES core_${name})
endfunction()

# tandem_test(module NEEDS ...): tests/<module>/*_test.cpp as one program test_<module>, linked with the core library.
function(tandem_test name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE tandem-core tandem_options tandem_test_folders GTest::gmock
    GTest::gtest_main)
  include(${CMAKE_SOURCE_DIR}/tests/${name}/needs.cmake OPTIONAL)  # what else test_${name} needs
  include(GoogleTest)
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()
