/* Calls a function that none of its libraries defines. */
#include "minimal.h"

int a_function_nobody_defines(void);

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_plugin plugin;
  (void)host;
  plugin = test_plugin("missing_symbol");
  plugin.layer_type_count = (uint32_t)a_function_nobody_defines();
  return &plugin;
}
