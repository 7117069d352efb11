/* A layer type that good.c has too, and another one, which must not be registered either. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_layer_type own, taken;
  static const tandem_layer_type* types[] = {&own, &taken};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  own = test_layer_type("test.Own");
  taken = test_layer_type("test.Good");
  plugin = test_plugin("taken_name");
  layers = test_layers(types, 2, 0, 0);
  plugin.layers = &layers;
  return &plugin;
}
