/* A valid plugin: a layer type and its kernel, in plain C. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  type = test_layer_type("test.Good");
  kernel = test_kernel("test.Good", "cpu");
  plugin = test_plugin("good");
  layers = test_layers(types, 1, kernels, 1);
  plugin.layers = &layers;
  return &plugin;
}
