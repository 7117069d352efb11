/* A module with a data set that refuses when it is loaded. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  host->explain("its drum is empty");
  return 0;
}
