// Layers with one large weight matrix, which they multiply by or read rows of, on NVIDIA GPUs.
#include "layers/embed/embed_cuda.h"
#include "layers/inner_product/inner_product_cuda.h"
#include "layers/matmul/matmul_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "matrices-cuda", "1.0")
      .kernel<Embed, EmbedCuda>(kind)
      .kernel<InnerProduct, InnerProductCuda>(kind)
      .kernel<MatMul, MatMulCuda>(kind)
      .table();
}
