# The layers and data sets that the readers under test load.
get_property(plugins GLOBAL PROPERTY TANDEM_PLUGINS)
list(FILTER plugins INCLUDE REGEX "^tandem_(layer|dataset)_")
add_dependencies(test_fuzz ${plugins})
