// Resizes a picture in bytes, in two passes, along its rows and down, each rounded to bytes: bit
// for bit what Pillow 13 makes of it, whichever instruction set the loops were compiled for. Only
// the part that is wanted is computed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "datasets/picture/picture.h"
#include "plugins/center_crop.h"
#include "plugins/resampling.h"

namespace tandem::picture {

// An axis of the part that is wanted. Position i is the sum of counts[i] neighboring pixels from
// first[i] on, tap t with weights[i * most + t].
struct ByteAxis {
  bool is_copy = false;  // nothing is resized: position i is pixel first[i]
  int most = 1;          // taps
  std::vector<int> first, counts;
  std::vector<int32_t> weights;
};
void make_axis(const center_crop::Part& part, resampling::Filter filter, ByteAxis& axis);

// The pixels, first and first beyond, that a part is made of.
[[nodiscard]] std::pair<int, int> touched(const center_crop::Part& part, resampling::Filter filter);

class ByteResize {
 public:
  // `view`, in its full size, covers the pixels that both axes read. It must outlive the rows.
  void begin(const View& view, const center_crop::Middle& middle, resampling::Filter filter);
  // Row y of the part, interleaved as the view; until the next call.
  [[nodiscard]] const unsigned char* row(int y);

 private:
  void narrow_rows();
  // Both return a row: the result, and one that is kept until the next call.
  const unsigned char* narrow(const unsigned char* row, unsigned char* result);
  const unsigned char* shorten(int y);

  ByteAxis across_, down_;
  bool is_down_first_ = false;
  View rows_;  // what the pass down reads: a part of the picture, or rows of the result's width
  int columns_ = 0;  // of the picture, read by the pass along the rows
  std::vector<unsigned char> pixels_, padded_, row_;
  std::vector<int32_t> sums_;
};

}  // namespace tandem::picture
