/* In another major version only the two version numbers have known offsets: the rest is not even
 * readable. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static struct {
    int32_t abi_major, abi_minor;
    uint32_t something_else;
    uintptr_t poison[8];
  } plugin = {TANDEM_ABI_MAJOR + 98, 4, 0xffffffffu, {1, 1, 1, 1, 1, 1, 1, 1}};
  (void)host;
  return (const tandem_plugin*)(const void*)&plugin;
}
