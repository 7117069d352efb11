// Clip on the cpu.
#include "layers/clip/clip.h"

#include "layers/clip/clip_formula.h"
#include "layers/common/elementwise_cpu.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "clip", "1.0")
      .layer<Clip>()
      .kernel<Clip, ElementwiseCpu<ClipFormula>>("cpu")
      .table();
}
