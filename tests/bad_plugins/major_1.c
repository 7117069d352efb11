/* Built for ABI 1, which this Tandem does not load: after the two version numbers nothing may be
 * read.
 */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static struct {
    int32_t abi_major, abi_minor;
    uint32_t struct_size;
    uintptr_t poison[14];
  } plugin = {1, 7, 112, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  (void)host;
  return (const tandem_plugin*)(const void*)&plugin;
}
