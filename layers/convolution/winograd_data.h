// The tensors, tiles and products of Winograd's algorithm (winograd_kernels.h), as its loops get
// them: sizes and addresses, plain data that owns nothing.
#pragma once

#include <cstdint>

namespace tandem::layers::winograd {

// `count` channels from `first` on in a row of a tensor, whose layout has blocks of `block`
// channels (plugins/cpu/layout.h). With a fold, these are folded channels; a fold divides the
// lanes of every instruction set.
struct Channels {
  int64_t block, height, width, first, count, row;  // row: the elements of a row of all channels
  int64_t fold;                                     // 1: none; 2 or 4
};

// The patches of tiles begin at (row * step - pad, column * step - pad) of the image; `step` and
// `pad` are in its pixels, folded or not. With a dilation the pixels of a patch or tile are
// `distance` apart: it lies in one of the images of every distance-th row and column, and the rows
// and columns of tiles are those of these images in turn.
struct Grid {
  int64_t rows, columns, step, pad_h, pad_w, distance;
  [[nodiscard]] int64_t begin(int64_t tile) const {
    return distance == 1 ? tile * step : tile % distance + tile / distance * distance * step;
  }
  [[nodiscard]] int64_t top(int64_t row) const { return begin(row) - pad_h; }
  [[nodiscard]] int64_t left(int64_t column) const { return begin(column) - pad_w; }
};

// Tiles of all images, numbered by image, row and column.
struct Range {
  int64_t begin, end;
};

// The image, row and column of a tile, counted on.
struct Position {
  Position(const Grid& grid, int64_t tile)
      : image(tile / (grid.rows * grid.columns)),
        row(tile / grid.columns % grid.rows),
        column(tile % grid.columns) {}
  void advance(const Grid& grid) {
    if (++column < grid.columns) return;
    column = 0;
    if (++row < grid.rows) return;
    row = 0;
    ++image;
  }
  int64_t image, row, column;
};

// Strides are in words of 32 bits.
struct Transformed {
  int64_t items, chunk_stride, value_stride;
};

// Weights of square kernels: columns become lanes, depths become items. Offsets are in floats.
// `flipped`: the kernel is rotated by 180 degrees, as the gradient by the input needs it. With a
// fold, depths are folded channels, and `depth_stride` is from one channel to the next.
struct Weights {
  int64_t columns, depths, column_stride, depth_stride;
  int64_t kernel, fold;
  bool flipped;
};

// c = a b, or c += a b, where c is float32. Depth and chunk strides are in words; of b and c the
// chunks of `columns` are used. `next_b` is the b of the product after this one, or of this one.
struct Product {
  const float *a, *b, *next_b;
  float* c;
  int64_t rows, depth, a_chunk, b_chunk, c_chunk;
  Range columns;
  bool adds;
};

// What becomes of outputs before they are stored. ReLUs see the values as they are stored, rounded.
struct Finish {
  const float* bias;  // of the first channel; may be null
  float least;        // what is below it becomes 0: for a ReLU 0, else -infinity
  // The output of a ReLU before the layer, laid out as the tensor that is stored, its gradient:
  // where it is not above 0, that becomes 0. May be null.
  const void* rectified;
};

}  // namespace tandem::layers::winograd
