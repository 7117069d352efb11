// Caffe's binary weight files (.caffemodel). Current, V1 and V0 files are read, current ones
// written; a file is believed only after all of it was looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

struct CaffeBlob {
  std::vector<int64_t> shape;
  std::vector<float> values;  // product of shape
};

struct CaffeLayer {
  std::string name;
  std::vector<CaffeBlob> blobs;
  // Of the current form: the number among all layers of the file, and the first bottom and top, ""
  // if the file does not say them.
  int position = -1;
  std::string type = {}, bottom = {}, top = {};
};

// The layers that hold weights, in the file's order. Error for a file that is missing, truncated,
// damaged or no .caffemodel.
[[nodiscard]] std::vector<CaffeLayer> read_caffemodel(const std::filesystem::path& path);

// The array of a .binaryproto file, as the mean of images. Error as above.
[[nodiscard]] CaffeBlob read_caffe_blob(const std::filesystem::path& path);

// Every layer of the net with its weights. The net is built without a kind of device, so that no
// Scale is joined with a BatchNorm; `values` is the net's whole weight array. A
// BatchNormScale becomes a BatchNorm and a Scale, as Caffe has them. Written whole or not at all.
// Error if it cannot be written.
void write_caffemodel(const std::filesystem::path& path, const Net& net,
                      const std::vector<float>& values);

// The sizes that Caffe's layer gives its blob `index`: of the first two for an InnerProduct or
// Embed, four for a (de)convolution; of all others (bias, slopes, means) without trailing ones.
[[nodiscard]] std::vector<int64_t> caffe_shape(const Net& net, const Layer& layer, size_t index);

}  // namespace tandem
