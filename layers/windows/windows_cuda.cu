// Layers that read a neighborhood of every element, on NVIDIA GPUs.
#include "layers/common/mapped_image_cuda.h"
#include "layers/lrn/lrn_cuda.h"
#include "layers/pooling/pooling_cuda.h"
#include "layers/upsample/upsample.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "windows-cuda", "1.0")
      .kernel<LocalResponseNormalisation, LrnCuda>(kind)
      .kernel<Pooling, PoolingCuda>(kind)
      .kernel<Upsample, MappedImageCuda<UpsampleSettings>>(kind)
      .table();
}
