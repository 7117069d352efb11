#include "core/data/loader/batch_layout.h"

#include "plugins/abi.h"

namespace tandem {
namespace {

constexpr int64_t batch_alignment = 64;

int64_t aligned_offset(int64_t offset) {
  return (offset + batch_alignment - 1) / batch_alignment * batch_alignment;
}

}  // namespace

BatchLayout make_batch_layout(int64_t rows, const Shape& sample, const std::vector<Shape>& more,
                              PixelForm pixels) {
  constexpr auto float_bytes = static_cast<int64_t>(sizeof(float));
  BatchLayout layout;
  layout.rows = rows;
  layout.sample = sample;
  layout.sample.n = 1;
  layout.label_offset = aligned_offset(sizeof(tandem_step));
  layout.data_offset = layout.label_offset + aligned_offset(rows * float_bytes);
  layout.sample_bytes = element_count(layout.sample) * pixel_bytes(pixels);
  layout.bytes = layout.data_offset + aligned_offset(rows * layout.sample_bytes);
  layout.more = more;
  for (Shape& shape : layout.more) {
    shape.n = 1;
    layout.more_offsets.push_back(layout.bytes);
    layout.bytes += aligned_offset(rows * element_count(shape) * float_bytes);
  }
  return layout;
}

}  // namespace tandem
