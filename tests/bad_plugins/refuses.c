/* A plugin that refuses this machine, with a reason. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  host->explain("it needs an abacus with 12 rods, and found none");
  return 0;
}
