// The options of a picture's transform: crop, augmentation, mean and scale.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/picture/axis.h"
#include "datasets/picture/mean_image.h"
#include "plugins/center_crop.h"
#include "plugins/sdk.h"

namespace tandem::picture {

struct TransformOptions {
  int64_t channels = 3, height = 0, width = 0;
  center_crop::Fit fit = center_crop::Fit::crop;
  int64_t resize = 0, resize_width = 0;  // as center_crop::Wanted's
  Filter filter = Filter::linear;
  bool in_bytes = false;  // where nothing is random, pictures are resized as by Pillow
  bool rgb = false;
  std::array<float, 3> mean{};                  // of B, G, R; or of gray
  std::shared_ptr<const MeanImage> mean_image;  // what else is taken away; null: nothing
  float scale = 1;
  // In tests and predictions: the crop's place, -1 the first pixels, 0 the middle, 1 the last ones,
  // and whether it is mirrored.
  int across = 0, down = 0;
  bool mirrored = false;
  bool random = false;  // training: what follows happens; otherwise the centre is cropped
  bool mirror = false;  // half of the samples
  int pad = 0;          // pixels of the mean around the picture, once it has its size
  double min_area = 0, max_area = 0;  // random resized crop: share of the picture; 0: none
  double min_ratio = 0.75, max_ratio = 4.0 / 3;  // and width / height
  double rotation = 0;                           // up to so many degrees either way
  std::array<double, 4> jitter{};  // brightness, contrast, saturation (0.4: 0.6 to 1.4), hue
  int random_operations = 0;       // RandAugment: how many of its operations,
  double magnitude = 0;            // and how strong, 0 to 30
  double trivial = 0;              // share of the samples that TrivialAugment changes instead
  double erase = 0;                // share of the samples that lose a rectangle

  [[nodiscard]] center_crop::Wanted wanted() const {
    return {width, height, resize, resize_width, fit};
  }
};

// The parameters that data sets of pictures declare.
[[nodiscard]] std::vector<sdk::Parameter> transform_parameters(const char* block);
// Refusal for values that do not fit each other or the net. Height and width are 0 where neither
// the net nor `resize` gives them.
[[nodiscard]] TransformOptions read_transform(const tandem_dataset_request& request,
                                              const sdk::Attributes& attributes);

}  // namespace tandem::picture
