/* From its entry every type of the plugin ABI can be reached: abidw writes them to abi_2_0.xml. */
#include "plugins/abi.h"

const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  (void)host;
  return NULL;
}
