// Layers that sum or normalize groups of values, on NVIDIA GPUs.
#include "layers/batch_norm/batch_norm_cuda.h"
#include "layers/batch_norm_scale/batch_norm_scale_cuda.h"
#include "layers/layer_norm/layer_norm_cuda.h"
#include "layers/mvn/mvn_cuda.h"
#include "layers/reduction/reduction_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "normalization-cuda", "1.0")
      .kernel<BatchNorm, BatchNormCuda>(kind)
      .kernel<BatchNormScale, BatchNormScaleCuda>(kind)
      .kernel<LayerNorm, LayerNormCuda>(kind)
      .kernel<MeanVarianceNormalisation, MvnCuda>(kind)
      .kernel<Reduction, ReductionCuda>(kind)
      .table();
}
