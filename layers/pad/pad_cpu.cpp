// Pad on the cpu.
#include "layers/common/mapped_image_cpu.h"
#include "layers/pad/pad.h"

using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "pad", "1.0")
      .layer<Pad>()
      .kernel<Pad, MappedImageCpu<PadSettings>>("cpu")
      .table();
}
