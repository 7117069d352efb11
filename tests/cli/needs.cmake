# The programs are run as a user runs them, with every built-in plugin and with those that fail.
target_link_libraries(test_cli PRIVATE nlohmann_json::nlohmann_json)
get_property(test_plugins GLOBAL PROPERTY TANDEM_TEST_PLUGINS)
# tandem-completion is installed, too.
add_dependencies(test_cli tandem-programs tandem-completion ${test_plugins})
if(TARGET tandem-shapes)
  target_compile_definitions(test_cli PRIVATE TANDEM_HAS_SHAPES)
endif()
if(TANDEM_CURL_INCLUDE)
  target_compile_definitions(test_cli PRIVATE TANDEM_HAS_CURL)
endif()
set(sanitizer_flags "")
if(TANDEM_SANITIZE STREQUAL "address")
  set(sanitizer_flags "-fsanitize=address,undefined")
elseif(TANDEM_SANITIZE STREQUAL "thread")
  set(sanitizer_flags "-fsanitize=thread")
endif()
target_compile_definitions(test_cli PRIVATE
  TANDEM_CMAKE="${CMAKE_COMMAND}" TANDEM_CXX_COMPILER="${CMAKE_CXX_COMPILER}" TANDEM_C_COMPILER="${CMAKE_C_COMPILER}"
  TANDEM_LIBRARY_FOLDER="${CMAKE_INSTALL_LIBDIR}" TANDEM_SANITIZER_FLAGS="${sanitizer_flags}")
# MPI libraries are not built for ThreadSanitizer.
if(TARGET tandem_transport_mpi AND NOT TANDEM_SANITIZE STREQUAL "thread")
  target_compile_definitions(test_cli PRIVATE TANDEM_HAS_MPI)
endif()
add_dependencies(test_cli tandem_probe)
if(TANDEM_HAS_CUDA)
  target_compile_definitions(test_cli PRIVATE TANDEM_HAS_CUDA)
  add_dependencies(test_cli tandem_fake_cuda tandem_kernels_cuda_fake)
  if(TARGET tandem_messages_cuda)
    target_compile_definitions(test_cli PRIVATE TANDEM_HAS_NCCL)
  endif()
endif()
# Stands before the C library in programs that are to meet failing disks.
add_library(tandem_failing_disk MODULE ${CMAKE_SOURCE_DIR}/tests/cli/preload/failing_disk.c)
target_compile_options(tandem_failing_disk PRIVATE -U_FORTIFY_SOURCE)  # it defines what these macros would replace
target_link_libraries(tandem_failing_disk PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(test_cli tandem_failing_disk)
target_compile_definitions(test_cli PRIVATE TANDEM_FAILING_DISK="$<TARGET_FILE:tandem_failing_disk>")
add_library(tandem_failing_calls MODULE ${CMAKE_SOURCE_DIR}/tests/cli/preload/failing_calls.c)
# It defines what _FORTIFY_SOURCE would replace, and is called before a sanitizer is ready.
target_compile_options(tandem_failing_calls PRIVATE -U_FORTIFY_SOURCE -fno-sanitize=all)
target_link_libraries(tandem_failing_calls PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(test_cli tandem_failing_calls)
target_compile_definitions(test_cli PRIVATE TANDEM_FAILING_CALLS="$<TARGET_FILE:tandem_failing_calls>")
