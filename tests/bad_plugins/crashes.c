/* A table that is an invalid pointer: the host crashes while it loads the module. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_plugin plugin;
  (void)host;
  plugin = test_plugin("crashes");
  plugin.layers = (const tandem_layers*)(uintptr_t)0xdead;
  return &plugin;
}
