// Power on the cpu.
#include "layers/power/power.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/power/power_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "power", "1.0")
      .layer<Power>()
      .kernel<Power, ElementwiseCpu<PowerFormula>>("cpu")
      .table();
}
