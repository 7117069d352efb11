// Upsample on the cpu.
#include "layers/common/mapped_image_cpu.h"
#include "layers/upsample/upsample.h"

using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "upsample", "1.0")
      .layer<Upsample>()
      .kernel<Upsample, MappedImageCpu<UpsampleSettings>>("cpu")
      .table();
}
