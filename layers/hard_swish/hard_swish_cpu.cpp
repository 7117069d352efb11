// HardSigmoid and HardSwish on the cpu.
#include "layers/hard_swish/hard_swish.h"

#include "layers/common/elementwise_cpu.h"
#include "layers/hard_swish/hard_swish_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "hard_swish", "1.0")
      .layer<HardSigmoid>()
      .kernel<HardSigmoid, ElementwiseCpu<HardSigmoidFormula>>("cpu")
      .layer<HardSwish>()
      .kernel<HardSwish, ElementwiseCpu<HardSwishFormula>>("cpu")
      .table();
}
