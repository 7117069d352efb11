/* Calls a function that none of its libraries defines. */
#include "minimal.h"

int a_function_nobody_defines(void);

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_plugin plugin;
  (void)host;
  plugin = test_plugin("missing_symbol");
  plugin.abi_minor = a_function_nobody_defines();
  return &plugin;
}
