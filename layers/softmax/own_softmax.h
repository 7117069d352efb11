// Softmax of plain float32 tensors, where oneDNN has only reference code. The value of a position
// depends on its own scores only.
#pragma once

#include <algorithm>

#include "layers/common/row_sums.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class OwnSoftmax {
 public:
  OwnSoftmax(const sdk::Shape& shape, int64_t axis) {
    const int64_t sizes[] = {shape.n, shape.c, shape.h, shape.w};
    for (int64_t i = 0; i < axis; ++i) outer_ *= sizes[i];
    for (int64_t i = axis + 1; i < 4; ++i) inner_ *= sizes[i];
    classes_ = sizes[axis];
  }

  void forward(int32_t threads, const float* x, float* y) const {
    for_tiles(threads,
              [=, this](int64_t first, int64_t width) { tile(x + first, width, y + first); });
  }
  // dx = y (dy - the sum of y dy over the classes).
  void backward(int32_t threads, const float* y, const float* dy, float* dx) const {
    for_tiles(threads, [=, this](int64_t first, int64_t width) {
      gradient_of_tile(y + first, dy + first, width, dx + first);
    });
  }

 private:
  static constexpr int64_t widest = 64;  // positions whose classes are processed together

  // body(where the first class of the tile is, its positions)
  template <class Body>
  void for_tiles(int32_t threads, const Body& body) const {
    const int64_t tiles = (inner_ + widest - 1) / widest;
    const int64_t floats = classes_ * std::min(widest, inner_);
    for_rows(threads, outer_ * tiles, floats * 16, [&](int64_t unit) {
      const int64_t begin = unit % tiles * widest;
      body(unit / tiles * classes_ * inner_ + begin, std::min(widest, inner_ - begin));
    });
  }

  void tile(const float* x, int64_t width, float* y) const {
    float highest[widest];
    double sums[widest] = {};
    std::copy_n(x, width, highest);
    for (int64_t c = 1; c < classes_; ++c) {
      const float* scores = x + c * inner_;
      for (int64_t k = 0; k < width; ++k) {
        highest[k] = scores[k] > highest[k] ? scores[k] : highest[k];
      }
    }
    if (inner_ == 1) {
      for (int64_t c = 0; c < classes_; ++c) y[c] = exponential(x[c] - *highest);
      for (int64_t c = 0; c < classes_; ++c) *sums += static_cast<double>(y[c]);
    }
    for (int64_t c = 0; c < classes_ && inner_ > 1; ++c) {
      for (int64_t k = 0; k < width; ++k) {
        const float power = exponential(x[c * inner_ + k] - highest[k]);
        y[c * inner_ + k] = power;
        sums[k] += static_cast<double>(power);
      }
    }
    for (int64_t c = 0; c < classes_; ++c) {
      for (int64_t k = 0; k < width; ++k) {
        y[c * inner_ + k] = static_cast<float>(static_cast<double>(y[c * inner_ + k]) / sums[k]);
      }
    }
  }

  void gradient_of_tile(const float* y, const float* dy, int64_t width, float* dx) const {
    double sums[widest] = {};
    for (int64_t c = 0; c < classes_; ++c) {
      for (int64_t k = 0; k < width; ++k) {
        const int64_t i = c * inner_ + k;
        sums[k] += static_cast<double>(y[i]) * static_cast<double>(dy[i]);
      }
    }
    for (int64_t c = 0; c < classes_; ++c) {
      for (int64_t k = 0; k < width; ++k) {
        const int64_t i = c * inner_ + k;
        dx[i] =
            static_cast<float>(static_cast<double>(y[i]) * (static_cast<double>(dy[i]) - sums[k]));
      }
    }
  }

  int64_t outer_ = 1, classes_ = 1, inner_ = 1;
};

}  // namespace tandem::layers
