# How Tandem's own code is built: warnings, sanitizers, one object library per module of core/, one test
# program per module. Sources are found by folder, so adding a file needs no edit here.

find_package(Threads REQUIRED)

# tandem_find(PACKAGE DEBIAN...): find_package, which notes in missing_packages which packages of Debian have it.
set(missing_packages "")
macro(tandem_find package)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND missing_packages ${ARGN})
  endif()
endmacro()
tandem_find(TBB libtbb-dev)
tandem_find(fmt libfmt-dev)
tandem_find(Protobuf libprotobuf-dev protobuf-compiler)
if(Protobuf_FOUND AND NOT TARGET protobuf::protoc)
  list(APPEND missing_packages protobuf-compiler)
endif()
tandem_find(dnnl libdnnl-dev ocl-icd-opencl-dev)  # its CMake files ask for OpenCL's headers
tandem_find(hwy libhwy-dev)
tandem_find(CLI11 libcli11-dev)
tandem_find(nlohmann_json nlohmann-json3-dev)
tandem_find(PNG libpng-dev)
# The CMake files of Debian's libzip-dev ask for programs of other packages.
find_path(TANDEM_ZIP_INCLUDE zip.h)
find_library(TANDEM_LIBRARY_zip zip)
if(NOT TANDEM_ZIP_INCLUDE OR NOT TANDEM_LIBRARY_zip)
  list(APPEND missing_packages libzip-dev)
endif()
find_package(ICU QUIET COMPONENTS uc)
if(NOT ICU_FOUND)
  list(APPEND missing_packages libicu-dev)
endif()
if(TANDEM_TESTS)
  tandem_find(GTest libgtest-dev libgmock-dev)
  if(GTest_FOUND AND NOT TARGET GTest::gmock)
    list(APPEND missing_packages libgmock-dev)
  endif()
endif()
# Optional: tandem fetch. The library itself is loaded when something is fetched.
find_path(TANDEM_CURL_INCLUDE curl/curl.h)
if(NOT TANDEM_CURL_INCLUDE)
  message(STATUS "tandem fetch: not built, without the headers of libcurl (Debian: libcurl4-openssl-dev)")
endif()
if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "libraries are missing: install them (Debian: apt-get install ${missing_packages})")
endif()
find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  # Without pch_defines and time_macros, ccache does not cache a file that uses a precompiled header.
  set(TANDEM_CCACHE_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${TANDEM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TANDEM_CCACHE_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${TANDEM_CCACHE_LAUNCHER})
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
set(quiet $<${gnu}:-Wno-maybe-uninitialized>)
if(TANDEM_SANITIZE STREQUAL "address")
  set(undefined undefined,float-cast-overflow)
  add_compile_options(-fsanitize=address,${undefined} -fno-sanitize-recover=${undefined} -fno-omit-frame-pointer -g1
    ${quiet})
  add_link_options(-fsanitize=address,undefined)
elseif(TANDEM_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -g1 ${quiet})
  add_link_options(-fsanitize=thread)
endif()
if(TANDEM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TANDEM_FUZZ needs clang, which has libFuzzer: this compiler is ${CMAKE_CXX_COMPILER}")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# g++ 12 otherwise collects garbage for about an eighth of a test's compilation. Peaks grow from 490 to 580 MB for a test,
# from 540 to 760 for winograd_kernels.cpp.
add_compile_options($<${gnu}:--param=ggc-min-heapsize=1000000>)

# A compiler for x86-64 fuses no multiplication with an addition unless it is asked to, one for aarch64 does: then other
# bits than elsewhere, and other bits of a loop's remainder than of its vectorized part. Kernels fuse where they say so.
# g++ notes each type that versions before 10 passed in other registers.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off> $<${gnu}:-Wno-psabi>)
endif()

# Hardening of every program, library and plugin (tests/cli/hardening_test.cpp reads the files): functions check their
# stack and copies the size of their target; files are relocated when they are loaded, and what that wrote is read-only
# afterwards. Sanitizers find more without the checks of _FORTIFY_SOURCE, which need an optimized build.
set(harden -fstack-protector-strong)
if(NOT TANDEM_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "Rel")
  list(APPEND harden -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
list(JOIN harden "," harden_cuda)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${harden}>" $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${harden_cuda}>)
add_link_options(LINKER:-z,relro,-z,now)

# OpenMP for modules: teams of g++'s library, which oneDNN uses, with every compiler (plugins/cpu/team.h), and loops that
# OpenMP's simd directive vectorizes.
add_library(tandem_openmp INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # It warns of each loop that it cannot vectorize.
  target_compile_options(tandem_openmp INTERFACE -fopenmp-simd -Wno-pass-failed)
  target_link_libraries(tandem_openmp INTERFACE gomp)
  if(NOT TANDEM_SANITIZE STREQUAL "thread")
    target_compile_definitions(tandem_openmp INTERFACE TANDEM_LIBGOMP)
  endif()
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(tandem_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# Most of a compilation is reading headers and instantiating what they define. Files in which nothing is computed, and
# tests, are compiled several at a time (unity builds), so that this is done once for all of them. A file with compile
# options of its own (arithmetic) stays alone. Within a module of core/ or a test program, names in anonymous namespaces
# must differ. Modules of one file and tests use precompiled headers, too. With -DTANDEM_FAST_BUILD=OFF each file is
# compiled on its own.
option(TANDEM_FAST_BUILD "Unity builds and precompiled headers" ON)

# tandem_unity(TARGET FILES): at most FILES sources of the target are compiled at once.
function(tandem_unity target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TANDEM_FAST_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
  # g++ excuses types of anonymous namespaces only in the main file.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# tandem_precompile(TARGET HEADERS...): an object library TARGET, with options and libraries set by the caller, whose
# precompiled header the targets given to tandem_use_precompiled(TARGET USERS...) share. g++ uses a precompiled header
# only with the same code generation options and macros. It ignores another one, clang refuses it.
function(tandem_precompile target)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp CONTENT "// Only for its precompiled header.\n")
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  if(TANDEM_FAST_BUILD)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
function(tandem_use_precompiled target)
  foreach(user ${ARGN})
    if(TANDEM_FAST_BUILD)
      target_precompile_headers(${user} REUSE_FROM ${target})
      set_target_properties(${user} PROPERTIES DEFINE_SYMBOL "")  # by default a macro NAME_EXPORTS, which nothing uses
    endif()
  endforeach()
endfunction()

# tandem_module(base): core/<name>/*.cpp as an object library core_<name>.
function(tandem_module name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(core_${name} OBJECT ${sources})
  target_link_libraries(core_${name} PUBLIC tandem_options fmt::fmt TBB::tbb Threads::Threads ${CMAKE_DL_LIBS})
  tandem_unity(core_${name} 7)  # 7: a changed file costs some 10 seconds
  set_property(GLOBAL APPEND PROPERTY TANDEM_CORE_MODULES core_${name})
endfunction()

# tandem_write_source(FILE TEXT): a source made of texts of other files, touched only where it differs.
function(tandem_write_source file text)
  file(WRITE ${file}.new "${text}")
  file(COPY_FILE ${file}.new ${file} ONLY_IF_DIFFERENT)
endfunction()

# tandem_shared_test(NAME PROGRAM FILTER PATTERN [ENVIRONMENT NAME=VALUE...] [PROPERTIES...]): the tests of PROGRAM that the
# pattern selects, in one process. Tests that share what a process has to begin with (loaded modules, runs to compare
# with) take a fifth of the time that a process for each of them takes.
function(tandem_shared_test name program)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FILTER" "ENVIRONMENT;PROPERTIES")
  add_test(NAME ${name} COMMAND ${program} --gtest_brief=1 --gtest_filter=${arg_FILTER})
  set_tests_properties(${name} PROPERTIES TIMEOUT 3600 COST 500  # begun first, they do not prolong the suite
    ENVIRONMENT "${arg_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "from 0 test suites" ${arg_PROPERTIES})
endfunction()

# tandem_test(module [SHARED PATTERN...]): tests/<module>/*_test.cpp as one program test_<module>, linked with the core
# library. Each test runs in a process of its own, but those that a PATTERN selects share a process, that of the first
# one that does. All have the module's name as their label, by which scripts/test selects them.
function(tandem_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SHARED")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE tandem_test_options tandem_test_folders GTest::gtest_main)
  tandem_use_precompiled(tandem_test_headers test_${name})
  tandem_unity(test_${name} 3)
  set(environment "")  # of processes that tests share
  include(${CMAKE_SOURCE_DIR}/tests/${name}/needs.cmake OPTIONAL)  # what else test_${name} needs
  set(others -)  # all but those of the patterns before
  set(number 0)
  foreach(pattern ${arg_SHARED})
    tandem_shared_test(${name}_shared.${number} test_${name} FILTER ${pattern}${others} ENVIRONMENT ${environment}
      PROPERTIES LABELS ${name})
    string(APPEND others ${pattern}:)
    math(EXPR number "${number} + 1")
  endforeach()
  include(GoogleTest)
  set(seconds 600)
  if(TANDEM_SANITIZE OR CMAKE_CROSSCOMPILING)  # in an emulator
    set(seconds 1800)
  endif()
  # A busy machine may take longer than the default of 5 s to list the tests.
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_FILTER *${others}
    PROPERTIES TIMEOUT ${seconds} LABELS ${name}
    ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}")  # for tests that build: this one is there
endfunction()
