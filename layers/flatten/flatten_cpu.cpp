// Flatten on the cpu.
#include "layers/common/renamed_axes.h"
#include "layers/flatten/flatten.h"

using tandem::layers::Flatten;
using tandem::layers::RenamedAxesCpu;
using tandem::sdk::Plugin;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "flatten", "1.0")
      .layer<Flatten>()
      .kernel<Flatten, RenamedAxesCpu>("cpu")
      .table();
}
