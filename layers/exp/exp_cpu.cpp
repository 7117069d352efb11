// Exp on the cpu: e^(a x + b).
#include "layers/exp/exp.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/exp/exp_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "exp", "1.0")
      .layer<Exponential>()
      .kernel<Exponential, ElementwiseCpu<ExponentialFormula>>("cpu")
      .table();
}
