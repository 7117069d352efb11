/* A layer type without the function for its output shapes. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  type = test_layer_type("test.Shapeless");
  type.shapes = 0;
  plugin = test_plugin("missing_field");
  layers = test_layers(types, 1, 0, 0);
  plugin.layers = &layers;
  return &plugin;
}
