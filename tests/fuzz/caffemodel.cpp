// Caffe's binary weight files: each blob that is read has the values of its shape.
#include "core/formats/caffemodel.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void caffemodel(std::string_view bytes) {
  const std::filesystem::path path = file_of("a.caffemodel", bytes);
  std::vector<CaffeLayer> layers;
  if (!accepts([&] { layers = read_caffemodel(path); })) return;
  for (const CaffeLayer& layer : layers) {
    for (const CaffeBlob& blob : layer.blobs) {
      int64_t count = 1;
      for (const int64_t size : blob.shape) count *= size;
      if (count != static_cast<int64_t>(blob.values.size())) fail("a blob of another shape");
    }
  }
}

}  // namespace tandem::fuzz
