// The description of a convolution by cuDNN.
#pragma once

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cuda {

// y = w * x: x is (n, c, h, w), the weights (y's channels, c / group, kernel).
struct ConvolutionShape {
  tandem_shape x, weight, y;
  int64_t group;
  struct Pair {
    int64_t h, w;
  } stride, pad, dilation;
};

constexpr tandem_shape bias_of(const ConvolutionShape& shape) {
  return {1, shape.y.c, 1, 1};
}

// Of one pass.
constexpr double operations_of(const ConvolutionShape& shape) {
  const tandem_shape &y = shape.y, &w = shape.weight;
  const double outputs = static_cast<double>(y.n * y.c) * static_cast<double>(y.h * y.w);
  return 2 * outputs * static_cast<double>(w.c * w.h * w.w);
}

// How its elements are stored and multiplied. Sums are always float32.
struct ConvolutionKind {
  int32_t dtype = TANDEM_FLOAT32;  // of x, y and the weights
  bool channels_last = false;      // x and y are NHWC, and the weights (O, H, W, I)
  bool allows_tf32 = false;        // products of float32 may round their factors
  // for names only: the layer's forward pass is this convolution's backward data pass
  bool deconvolves = false;
};

// What the forward pass does to y before it writes it: adds a value to each output channel, which
// has the tensors' dtype, and rectifies.
struct ConvolutionEpilogue {
  bool adds_bias = false;
  bool rectifies = false;  // only with a bias
};

}  // namespace tandem::cuda
