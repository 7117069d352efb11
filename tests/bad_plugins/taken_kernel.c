/* A kernel that good.c has too. Neither of the two can then be used. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel};
  static tandem_plugin plugin;
  (void)host;
  kernel = test_kernel("test.Good", "cpu");
  plugin = test_plugin("taken_kernel");
  plugin.kernels = kernels;
  plugin.kernel_count = 1;
  return &plugin;
}
