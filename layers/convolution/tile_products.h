// Products of tiles of bfloat16 on CPUs with AMX, and how their operands are made. A tile of the
// first operand has 16 rows of 32 depths; one of the second has 16 columns of 32 depths, of which
// two neighbors are next to each other; sums are float32. They are added in an order that depends
// on the arguments only.
#pragma once

#include <cstdint>

#include "plugins/cpu/bfloat16.h"

namespace tandem::layers::tile_products {

constexpr int64_t rows = 16, columns = 16, depth = 32;  // of a tile
// A product makes sums of up to 2x2 tiles, which lie in rows of this many.
constexpr int64_t block = 2 * columns;

// Whether this CPU has such tiles and the system lets this process use them.
[[nodiscard]] bool are_available();

// The calling thread may multiply while it holds one.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

struct Tiles {
  int64_t rows = 2, columns = 2;  // 1 or 2 tiles of each
};

// Rows of channels, whose depths are pixels, by pairs of pixels of other channels: of so many
// images, with the same number of steps each. The sums are added to those that are there.
struct Correlation {
  const cpu::bfloat16* a;
  int64_t row, a_image;
  const cpu::bfloat16* b;
  int64_t pair, b_image;  // from a pair of pixels to the next
  int64_t images, steps;
  float* sums;
};
void correlate(const Correlation& correlation, Tiles tiles);

// The values of two pixels in turns: `count` of each, a multiple of 16.
void interleave(const cpu::bfloat16* first, const cpu::bfloat16* second, int64_t count,
                cpu::bfloat16* target);
// 16 channels of 32 pixels, of which each is `source_row` values from the next, to rows of pixels.
void transpose(const cpu::bfloat16* source, int64_t source_row, cpu::bfloat16* target,
               int64_t target_row);

}  // namespace tandem::layers::tile_products
