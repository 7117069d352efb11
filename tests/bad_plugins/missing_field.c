/* A layer type without the function for its output shapes. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_plugin plugin;
  (void)host;
  type = test_layer_type("test.Shapeless");
  type.shapes = 0;
  plugin = test_plugin("missing_field");
  plugin.layer_types = types;
  plugin.layer_type_count = 1;
  return &plugin;
}
