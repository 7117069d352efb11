// BNLL on the cpu.
#include "layers/bnll/bnll.h"

#include "layers/bnll/bnll_formula.h"
#include "layers/common/elementwise_cpu.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "bnll", "1.0")
      .layer<Bnll>()
      .kernel<Bnll, ElementwiseCpu<BnllFormula>>("cpu")
      .table();
}
