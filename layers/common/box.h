// A box of elements in one tensor and its position in another. It describes how layers join, cut,
// repeat and reorder tensors. In a blocked layout the box begins and ends at multiples of the
// block.
#pragma once

#include <cstdint>
#include <utility>

#include "layers/common/axes.h"
#include "plugins/cpu/layout.h"

namespace tandem::layers {

// Trivially copyable, so that it can be an argument of a kernel on a GPU.
class Box {
 public:
  struct Axis {
    int64_t extent, source, target;  // source and target are strides, in elements
  };

  // The box of `extent` that begins at `source_begin` in a tensor of shape `source`, and at
  // `target_begin` in one of shape `target`. The shapes include the rows of the batch. Its elements
  // are `step` apart in the source, of which channels may be so in plain layouts only.
  Box(int32_t layout, const sdk::Shape& source, const Extents& source_begin,
      const sdk::Shape& target, const Extents& target_begin, const Extents& extent,
      const Extents& step = {1, 1, 1, 1}) {
    // NHWC is one block of all channels, whose number may differ between the two tensors.
    const bool last = layout == TANDEM_NHWC;
    const int64_t block = last ? 1 : cpu::block_of(layout, 1);
    const Memory from(source, last, block), to(target, last, block);
    source_offset = from.offset(source_begin, block);
    target_offset = to.offset(target_begin, block);
    push({block, 1, 1});
    if (last) push({extent[1], from.c * step[1], to.c});
    push({extent[3], from.w * step[3], to.w});
    push({extent[2], from.h * step[2], to.h});
    if (!last) push({extent[1] / block, from.c * step[1], to.c});
    push({extent[0], from.n, to.n});
  }

  // The whole tensor, from one plain layout to another.
  Box(const tandem_tensor& source, const tandem_tensor& target) {
    const Memory from(source.shape, source.layout == TANDEM_NHWC, 1);
    const Memory to(target.shape, target.layout == TANDEM_NHWC, 1);
    const sdk::Shape& s = target.shape;
    push({1, 1, 1});
    if (target.layout == TANDEM_NHWC) push({s.c, from.c, to.c});
    push({s.w, from.w, to.w});
    push({s.h, from.h, to.h});
    if (target.layout != TANDEM_NHWC) push({s.c, from.c, to.c});
    push({s.n, from.n, to.n});
  }

  [[nodiscard]] Box reversed() const {
    Box result = *this;
    std::swap(result.source_offset, result.target_offset);
    for (Axis& axis : result.axes) std::swap(axis.source, axis.target);
    return result;
  }
  [[nodiscard]] int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < count; ++i) product *= axes[i].extent;
    return product;
  }

  int64_t source_offset = 0, target_offset = 0;
  int count = 0;      // of axes
  Axis axes[5] = {};  // innermost first

 private:
  // Strides in elements: from one n, c (or block of channels), h, w to the next.
  struct Memory {
    Memory(const sdk::Shape& s, bool channels_last, int64_t block)
        : n(s.c * s.h * s.w),
          c(channels_last ? 1 : s.h * s.w * block),
          h(channels_last ? s.w * s.c : s.w * block),
          w(channels_last ? s.c : block) {}
    [[nodiscard]] int64_t offset(const Extents& at, int64_t block) const {
      return at[0] * n + at[1] / block * c + at[2] * h + at[3] * w;
    }
    int64_t n, c, h, w;
  };

  // Adds axes from the innermost outwards. An axis that continues the previous one contiguously
  // lengthens it instead.
  void push(const Axis& axis) {
    if (axis.extent == 1) return;
    if (count == 0) axes[count++] = {1, 1, 1};
    Axis& inner = axes[count - 1];
    if (axis.source == inner.extent * inner.source && axis.target == inner.extent * inner.target) {
      inner.extent *= axis.extent;
    } else {
      axes[count++] = axis;
    }
  }
};

}  // namespace tandem::layers
