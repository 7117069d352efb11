// The loops of Winograd's algorithm F(m, r) for convolutions with r x r kernels and stride 1
// (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2016), one function for each
// step and pass. A tile of m x m outputs depends on a patch of e x e inputs, e = m + r - 1. With
// the matrices B, G and A of the algorithm, the output of a tile is A^T [(G g G^T) * (B^T d B)] A,
// where the products are summed over channels. Its gradient by the kernel g is G^T [(A dy A^T) *
// (B^T d B)] G, summed over tiles.
//
// A transformed tensor has e * e values for each item and channel, where items are tiles, or the
// channels of the weights' other side. Channels are in chunks of as many as a vector has lanes:
// value, chunk, item, lane. Everything runs on the calling thread and allocates nothing.
//
// A stride of s becomes 1 if images are *folded*: instead of c channels they have c * s * s, each
// with every s-th row and column, and the kernel is folded alike, with zeros beyond its edge.
#pragma once

#include <cstdint>

#include "layers/convolution/winograd_data.h"

namespace tandem::layers::winograd {

// F(outputs, kernel). F(1, r) is direct convolution as a product of matrices.
struct Algorithm {
  int64_t outputs, kernel;
  [[nodiscard]] int64_t edge() const { return outputs + kernel - 1; }
  [[nodiscard]] int64_t values() const { return edge() * edge(); }
};
inline constexpr int algorithm_count = 4;
inline constexpr Algorithm algorithms[algorithm_count] = {{4, 3}, {2, 3}, {1, 3}, {2, 5}};

// Of tensors of one element type, float32 or bfloat16.
struct ImageTransforms {
  // A chunk of the tiles' patches, e x e (of an input) or m x m (of an output gradient), beyond the
  // image 0. The chunk's items that have no tile, and lanes without a channel, become 0.
  using Patches = void (*)(const void* tensor, const Channels& channels, const Grid& grid,
                           const Range& tiles, int64_t chunk, const Transformed& form,
                           float* transformed);
  Patches inputs;                  // for products by channels
  Patches item_inputs, gradients;  // for products by items
  // The reverse of a chunk: tiles of m x m outputs, not folded.
  void (*outputs)(const float* transformed, const Transformed& form, const Grid& grid,
                  const Range& tiles, int64_t chunk, const Finish& finish, const Channels& channels,
                  void* tensor);
};

struct Transforms {
  ImageTransforms float32, bfloat16;
  void (*weights)(const float* plain, const Weights& weights, int64_t chunk,
                  const Transformed& form, float* transformed);
  void (*weight_gradients)(const float* transformed, const Transformed& form,
                           const Weights& weights, int64_t chunk, const Range& depths, bool adds,
                           float* plain);
};

// How products are computed. The operands consist of words of 32 bits: a float32, or two bfloat16
// that are neighbors in depth. Sums are float32.
struct Arithmetic {
  int64_t depths_in_word;
  Transforms transforms[algorithm_count];
  // One row of `a` for each item, and its channels are the depth: a multiple of `lanes`.
  void (*multiply_channels)(const Product& product);
  // One row of `a` for each channel, and its items are the depth.
  void (*multiply_items)(const Product& product);
};

struct Kernels {
  const char* instructions;  // such as "AVX2"
  int64_t lanes;
  int64_t row_block;  // a product's rows are a multiple of it
  int64_t panel;      // chunks of columns that a product takes at a time, at most
  Arithmetic float32;
  // Empty (0 depths in a word) without AVX-512, and to be used on CPUs with AVX512_BF16 only.
  Arithmetic bfloat16;
  // sums[lane] = the sum of a chunk's channels over all images, not folded.
  using Sums = void (*)(const void* tensor, const Channels& channels, int64_t images, int64_t chunk,
                        float* sums);
  Sums sum_float32, sum_bfloat16;
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const Kernels& kernels();

}  // namespace tandem::layers::winograd
