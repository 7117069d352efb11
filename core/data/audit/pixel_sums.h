// Means and squares of the channels of pictures, summed over pictures.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Sums over pictures of the mean of each channel and of its squares.
struct PixelSums {
  int64_t pictures = 0;
  std::vector<double> values, squares;  // by channel

  // `pixels`: C,H,W.
  void add(const std::vector<float>& pixels, int64_t channels);
  void add(const PixelSums& other);
};

}  // namespace tandem
