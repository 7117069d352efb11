// ELU on the cpu.
#include "layers/elu/elu.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/elu/elu_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "elu", "1.0")
      .layer<Elu>()
      .kernel<Elu, ElementwiseCpu<EluFormula>>("cpu")
      .table();
}
