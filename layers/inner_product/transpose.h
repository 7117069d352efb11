// Transposes float matrices by a team, in tiles that stay in the L1 cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cpu/team.h"

namespace tandem::layers {

// Calls body(row, column) for every element of a matrix, tile by tile. The tiles of one thread are
// neighbors in the direction of the columns. `body` must write only the result of its element.
template <class Body>
void for_tiles(int32_t threads, int64_t rows, int64_t columns, const Body& body) {
  constexpr int64_t tile = 16;
  const int64_t row_tiles = (rows + tile - 1) / tile, column_tiles = (columns + tile - 1) / tile;
  cpu::for_items(threads, column_tiles, tile * rows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t column_end = std::min(columns, (t + 1) * tile);
      for (int64_t r = 0; r < row_tiles; ++r) {
        const int64_t row_end = std::min(rows, (r + 1) * tile);
        for (int64_t column = t * tile; column < column_end; ++column) {
          for (int64_t row = r * tile; row < row_end; ++row) body(row, column);
        }
      }
    }
  });
}

// target (columns x rows, contiguous) = source (rows x columns, contiguous).
inline void transpose(int32_t threads, const float* source, int64_t rows, int64_t columns,
                      float* target) {
  for_tiles(threads, rows, columns, [=](int64_t row, int64_t column) {
    target[column * rows + row] = source[row * columns + column];
  });
}

}  // namespace tandem::layers
