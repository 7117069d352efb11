// Samples as pictures: undoes the subtraction of means and the scaling that the net's input has.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"

namespace tandem {

// Rows of R,G,B bytes.
struct DrawnPicture {
  int64_t width = 0, height = 0;
  std::vector<unsigned char> pixels;
};

class Display {
 public:
  // `parameters`: the data set's, with everything resolved. Error unless the samples have 1 or 3
  // channels.
  Display(const std::map<std::string, std::string>& parameters, const Shape& sample);

  // Of a sample's floats (C,H,W).
  [[nodiscard]] DrawnPicture picture(const float* pixels) const;

 private:
  [[nodiscard]] std::array<unsigned char, 3> color(const float* pixels, int64_t at) const;

  Shape sample_;
  double scale_ = 1;
  std::vector<double> means_;
  bool rgb_ = false;
};

// Shrunk by means of areas until no side is longer than `side`; as it is if it is smaller.
[[nodiscard]] DrawnPicture shrunk(const DrawnPicture& picture, int64_t side);
// As PNG in base64, as pages have pictures.
[[nodiscard]] std::string base64_png(const DrawnPicture& picture);

}  // namespace tandem
