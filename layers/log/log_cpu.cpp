// Log on the cpu.
#include "layers/log/log.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/log/log_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "log", "1.0")
      .layer<Logarithm>()
      .kernel<Logarithm, ElementwiseCpu<LogarithmFormula>>("cpu")
      .table();
}
