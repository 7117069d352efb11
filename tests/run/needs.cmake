# Strategies are tested with a layer that is not built in.
add_dependencies(test_run test_plugin_run_time)
