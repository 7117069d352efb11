/* Its layer tables are of another major version, so that nothing after the version may be read. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  layers = test_layers((const tandem_layer_type* const*)(uintptr_t)1, 9, 0, 0);
  layers.major = 3;
  layers.minor = 1;
  plugin = test_plugin("other_layers");
  plugin.layers = &layers;
  return &plugin;
}
