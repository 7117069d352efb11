// GELU on the cpu.
#include "layers/gelu/gelu.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/gelu/gelu_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "gelu", "1.0")
      .layer<Gelu>()
      .kernel<Gelu, ElementwiseCpu<GeluFormula>>("cpu")
      .table();
}
