// Where the arrays of a batch lie in its memory, and how many batches a ring of memory holds. The
// loader fills such memory and plans read it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/data/pixels.h"

namespace tandem {

// One batch in memory: tandem_step, then labels, pixels and the net's other inputs, each on a
// multiple of 64 bytes. All are floats; pixels may be bytes.
struct BatchLayout {
  int64_t rows = 0;
  Shape sample;
  int64_t sample_bytes = 0;  // of the pixels of one row
  int64_t label_offset = 0, data_offset = 0, bytes = 0;
  std::vector<Shape> more;  // of one sample each
  std::vector<int64_t> more_offsets;
};
[[nodiscard]] BatchLayout make_batch_layout(int64_t rows, const Shape& sample,
                                            const std::vector<Shape>& more = {},
                                            PixelForm pixels = PixelForm::floats);

constexpr int ring_slots = 3;  // batches in memory at once

}  // namespace tandem
