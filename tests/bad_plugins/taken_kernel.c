/* A kernel that good.c has too. Neither of the two can then be used. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  kernel = test_kernel("test.Good", "cpu");
  plugin = test_plugin("taken_kernel");
  layers = test_layers(0, 0, kernels, 1);
  plugin.layers = &layers;
  return &plugin;
}
