# Layers are tested as the modules they are.
get_property(modules GLOBAL PROPERTY TANDEM_PLUGINS)
list(FILTER modules INCLUDE REGEX "^tandem_layer_")
add_dependencies(test_layers ${modules})
