// AbsVal on the cpu.
#include "layers/absval/absval.h"

#include "layers/absval/absval_formula.h"
#include "layers/common/elementwise_cpu.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "absval", "1.0")
      .layer<AbsoluteValue>()
      .kernel<AbsoluteValue, ElementwiseCpu<AbsoluteValueFormula>>("cpu")
      .table();
}
