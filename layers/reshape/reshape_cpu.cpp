// Reshape on the cpu.
#include "layers/common/renamed_axes.h"
#include "layers/reshape/reshape.h"

using tandem::layers::RenamedAxesCpu;
using tandem::layers::Reshape;
using tandem::sdk::Plugin;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "reshape", "1.0")
      .layer<Reshape>()
      .kernel<Reshape, RenamedAxesCpu>("cpu")
      .table();
}
