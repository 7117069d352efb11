/* Its entry ends the program, as a library does that finds no license. */
#include <stdlib.h>

#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  (void)host;
  exit(0);
}
