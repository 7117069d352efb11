// The mean of each pixel of a data set, as Caffe's compute_image_mean writes it (.binaryproto):
// taken from pictures at the same place. It is laid over the whole resized picture; one of another
// size is stretched to it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "datasets/picture/picture.h"

namespace tandem::picture {

class MeanImage {
 public:
  // `mean`: what is taken away from each channel already. Refusal for a file that is damaged, or is
  // no array of 1 or 3 channels; one channel is that of all.
  MeanImage(const std::string& path, int channels, const std::array<float, 3>& mean);

  // What is still to be taken away from a region of a picture, resampled to the planes, which are
  // in the order of the picture's channels, or in reverse. Beyond the picture nothing is.
  void draw(const Size& whole, const Region& region, bool reversed, bool mirrored,
            const Planes& result) const;

 private:
  int width_ = 0, height_ = 0;
  std::vector<float> values_;  // by channel of the picture; less the mean
};

}  // namespace tandem::picture
