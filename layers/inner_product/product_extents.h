// The extents of an InnerProduct's products on the cpu.
#pragma once

#include <cstdint>

namespace tandem::layers {

// `rows` of x times the weights of `outputs` neurons for `inputs` elements. The strides are the
// distances between the rows of the weights and of the output, since slices use a part of the same
// matrices.
struct ProductExtents {
  int64_t rows, inputs, outputs, weight_stride, output_stride;
  bool bias, adds;  // adds: to the output
};

}  // namespace tandem::layers
