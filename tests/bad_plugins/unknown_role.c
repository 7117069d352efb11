/* A layer type with an input of a role that this version does not know. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static const tandem_input input = {sizeof(tandem_input), 9, "data"};
  static const tandem_input* inputs[] = {&input};
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  type = test_layer_type("test.Unknown");
  type.inputs = inputs;
  type.input_count = 1;
  layers = test_layers(types, 1, 0, 0);
  plugin = test_plugin("unknown_role");
  plugin.layers = &layers;
  return &plugin;
}
