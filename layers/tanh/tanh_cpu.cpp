// TanH on the cpu.
#include "layers/tanh/tanh.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/tanh/tanh_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "tanh", "1.0")
      .layer<HyperbolicTangent>()
      .kernel<HyperbolicTangent, ElementwiseCpu<HyperbolicTangentFormula>>("cpu")
      .table();
}
