# Programs that measure are run as a user runs them, on small nets.
target_sources(test_bench PRIVATE ${CMAKE_SOURCE_DIR}/bench/lossless_run.cpp
  ${CMAKE_SOURCE_DIR}/bench/lossless_tolerance.cpp
  ${CMAKE_SOURCE_DIR}/tests/cli/program.cpp)
get_property(built_in GLOBAL PROPERTY TANDEM_PLUGINS)
add_dependencies(test_bench check_lossless bench_stall ${built_in})
