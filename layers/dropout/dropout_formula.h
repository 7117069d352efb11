// The random mask of Dropout: the same bits on every kind of device.
#pragma once

#include "plugins/cpu/layout.h"
#include "plugins/random.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// The mask of one binding; trivially copyable.
class DropoutFormula {
 public:
  explicit DropoutFormula(const sdk::Binding& binding)
      : placement_(binding.input(0)),
        ratio_(static_cast<float>(binding.attributes.number("dropout_ratio"))),
        is_per_image_(binding.attributes.boolean("per_image")),
        layer_(binding.raw.layer_index),
        first_row_(static_cast<uint64_t>(binding.raw.batch_begin)),
        first_element_(binding.raw.slice_begin * placement_.shape.h * placement_.shape.w) {}

  // The factor of a kept element.
  [[nodiscard]] TANDEM_HOST_DEVICE float factor() const { return 1 / (1 - ratio_); }

  // The number of random blocks that contain elements of a row, and the first of them.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t first_block() const { return first_element_ / 4; }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t blocks() const {
    return (first_element_ + placement_.row_size() + 3) / 4 - first_block();
  }

  // body(offset, whether it is kept) for those of the four elements of a random block that belong
  // to the binding.
  template <class Body>
  TANDEM_HOST_DEVICE void drop(const tandem_step& step, int64_t row, uint32_t block,
                               const Body& body) const {
    const int64_t row_size = placement_.row_size();
    const tandem_random4 random = random_of(step, row, block);
    const int64_t first = int64_t{block} * 4 - first_element_;
    const int64_t last = row_size - first < 4 ? row_size - first : 4;
    for (int64_t lane = first < 0 ? -first : 0; lane < last; ++lane) {
      body(row * row_size + offset(first + lane), is_kept(random, lane));
    }
  }

  // The parts of drop(), for rows that lie in C,H,W order and begin with a whole block.
  [[nodiscard]] bool has_whole_blocks() const {
    return placement_.block == 1 && first_element_ % 4 == 0;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t row_size() const { return placement_.row_size(); }
  [[nodiscard]] TANDEM_HOST_DEVICE tandem_random4 random_of(const tandem_step& step, int64_t row,
                                                            uint32_t block) const {
    return tandem_random_block(step.seed, step.step, layer_,
                               first_row_ + static_cast<uint64_t>(step.first_row + row),
                               is_per_image_ ? 0 : block);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE bool is_kept(const tandem_random4& random, int64_t lane) const {
    return tandem_uniform(random.value[is_per_image_ ? 0 : lane]) >= ratio_;
  }

 private:
  // The offset of the row's element number `element`, counted in C,H,W order.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t offset(int64_t element) const {
    if (placement_.block == 1) return element;
    const tandem_shape& s = placement_.shape;
    return placement_.offset(element / (s.h * s.w), element / s.w % s.h, element % s.w);
  }

  cpu::Placement placement_;
  float ratio_;
  bool is_per_image_;
  uint32_t layer_;
  uint64_t first_row_;
  int64_t first_element_;  // of the slice in the whole row
};

}  // namespace tandem::layers
