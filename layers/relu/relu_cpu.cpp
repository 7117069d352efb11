// ReLU on the cpu.
#include "layers/relu/relu.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/relu/relu_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "relu", "1.0")
      .layer<Relu>()
      .kernel<Relu, ElementwiseCpu<ReluFormula>>("cpu")
      .table();
}
