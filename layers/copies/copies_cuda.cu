// The layers that move elements and compute nothing, on NVIDIA GPUs.
#include "layers/common/mapped_image_cuda.h"
#include "layers/common/renamed_axes_cuda.h"
#include "layers/concat/concat_cuda.h"
#include "layers/crop/crop_cuda.h"
#include "layers/flatten/flatten.h"
#include "layers/pad/pad.h"
#include "layers/permute/permute_cuda.h"
#include "layers/reorder/reorder_cuda.h"
#include "layers/reshape/reshape.h"
#include "layers/silence/silence_cuda.h"
#include "layers/slice/slice_cuda.h"
#include "layers/split/split_cuda.h"
#include "layers/tile/tile_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "copies-cuda", "1.0")
      .kernel<Concat, ConcatCuda>(kind)
      .kernel<Crop, CropCuda>(kind)
      .kernel<Flatten, RenamedAxesCuda>(kind)
      .kernel<Pad, MappedImageCuda<PadSettings>>(kind)
      .kernel<Permute, PermuteCuda>(kind)
      .kernel<Reorder, ReorderCuda>(kind)
      .kernel<Reshape, RenamedAxesCuda>(kind)
      .kernel<Silence, SilenceCuda>(kind)
      .kernel<Slice, SliceCuda>(kind)
      .kernel<Split, SplitCuda>(kind)
      .kernel<Tile, TileCuda>(kind)
      .table();
}
