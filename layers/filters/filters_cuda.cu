// Convolution and Deconvolution on NVIDIA GPUs.
#include "layers/convolution/convolution_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "filters-cuda", "1.0")
      .kernel<Convolution, ConvolutionCuda>(kind)
      .kernel<Deconvolution, DeconvolutionCuda>(kind)
      .table();
}
