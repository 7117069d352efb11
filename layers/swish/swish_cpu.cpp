// Swish and SiLU on the cpu.
#include "layers/swish/swish.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/swish/swish_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "swish", "1.0")
      .layer<Swish>()
      .layer<SigmoidLinearUnit>()
      .kernel<Swish, ElementwiseCpu<SwishFormula>>("cpu")
      .kernel<SigmoidLinearUnit, ElementwiseCpu<SiluFormula>>("cpu")
      .table();
}
