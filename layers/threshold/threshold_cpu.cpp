// Threshold on the cpu.
#include "layers/threshold/threshold.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/threshold/threshold_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "threshold", "1.0")
      .layer<Threshold>()
      .kernel<Threshold, ElementwiseCpu<ThresholdFormula>>("cpu")
      .table();
}
