# The registry is tested with modules that fail, the SDK with the samples, the package with cmake itself.
get_property(test_plugins GLOBAL PROPERTY TANDEM_TEST_PLUGINS)
get_property(samples GLOBAL PROPERTY TANDEM_SAMPLE_PLUGINS)
add_dependencies(test_plugin ${test_plugins} ${samples})
target_compile_definitions(test_plugin PRIVATE
  TANDEM_CMAKE="${CMAKE_COMMAND}" TANDEM_C_COMPILER="${CMAKE_C_COMPILER}"
  TANDEM_CXX_COMPILER="${CMAKE_CXX_COMPILER}" TANDEM_NM="${CMAKE_NM}")
