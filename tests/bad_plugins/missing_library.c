/* Needs a library that is on no search path. */
#include "minimal.h"

int tandem_test_absent(void);

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_plugin plugin;
  (void)host;
  plugin = test_plugin("missing_library");
  plugin.abi_minor = tandem_test_absent();
  return &plugin;
}
