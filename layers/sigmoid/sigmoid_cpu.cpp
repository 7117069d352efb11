// Sigmoid on the cpu.
#include "layers/sigmoid/sigmoid.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/sigmoid/sigmoid_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sigmoid", "1.0")
      .layer<Sigmoid>()
      .kernel<Sigmoid, ElementwiseCpu<SigmoidFormula>>("cpu")
      .table();
}
