// Layers that combine a tensor element by element with values or with other tensors, and Dropout,
// on NVIDIA GPUs.
#include "layers/bias/bias_cuda.h"
#include "layers/dropout/dropout_cuda.h"
#include "layers/eltwise/eltwise_cuda.h"
#include "layers/prelu/prelu_cuda.h"
#include "layers/scale/scale_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "affine-cuda", "1.0")
      .kernel<Bias, BiasCuda>(kind)
      .kernel<Dropout, DropoutCuda>(kind)
      .kernel<Eltwise, EltwiseCuda>(kind)
      .kernel<ParametricRelu, PreluCuda>(kind)
      .kernel<Scale, ScaleCuda>(kind)
      .table();
}
