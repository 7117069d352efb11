// Copies a box out of one tensor into another of the same layout: what joining, cutting and
// repeating tensors is made of. All rows of the batch, in runs as long as memory allows. In a
// blocked layout the box begins and ends at multiples of the block.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "layers/axes.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

// The layouts in which channels can be cut at all of `places`, input as output.
inline sdk::LayoutOptions layouts_cut_at(const std::vector<int64_t>& places) {
  const auto fits = [&](int64_t block) {
    return std::all_of(places.begin(), places.end(),
                       [block](int64_t place) { return place % block == 0; });
  };
  return sdk::any_layout(fits(16) ? 16 : fits(8) ? 8 : 1);
}

class BoxCopy {
 public:
  // The box of `extent` that begins at `source_begin` in a tensor of shape `source`, and at
  // `target_begin` in one of shape `target`. Shapes have the batch's rows.
  BoxCopy(int32_t layout, const sdk::Shape& source, const Extents& source_begin,
          const sdk::Shape& target, const Extents& target_begin, const Extents& extent) {
    // NHWC is one block of all channels, whose number differs from tensor to tensor.
    const bool last = layout == TANDEM_NHWC;
    const int64_t block = last ? 1 : cpu::block_of(layout, 1);
    const Memory from(source, last, block), to(target, last, block);
    source_offset_ = from.offset(source_begin, block);
    target_offset_ = to.offset(target_begin, block);
    push({block, 1, 1});
    if (last) push({extent[1], from.c, to.c});
    push({extent[3], from.w, to.w});
    push({extent[2], from.h, to.h});
    if (!last) push({extent[1] / block, from.c, to.c});
    push({extent[0], from.n, to.n});
  }

  [[nodiscard]] BoxCopy reversed() const {
    BoxCopy result = *this;
    std::swap(result.source_offset_, result.target_offset_);
    for (Axis& axis : result.axes_) std::swap(axis.source, axis.target);
    return result;
  }

  template <class T>
  void copy(const sdk::Call& call, const T* source, T* target) const {
    for_runs(call, [=](int64_t from, int64_t to, int64_t count) {
      std::copy_n(source + from, count, target + to);
    });
  }
  void add(const sdk::Call& call, const float* source, float* target) const {
    for_runs(call, [=](int64_t from, int64_t to, int64_t count) {
      const float* x = source + from;
      float* y = target + to;
      for (int64_t i = 0; i < count; ++i) y[i] += x[i];
    });
  }
  void clear(const sdk::Call& call, float* target) const {
    for_runs(call,
             [=](int64_t, int64_t to, int64_t count) { std::fill_n(target + to, count, 0.0F); });
  }

 private:
  struct Axis {
    int64_t extent, source, target;  // steps, in elements
  };

  // Elements from one n, c (or block of channels), h, w to the next.
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

  // From the innermost axis out; one that goes on where the last one ended lengthens it.
  void push(const Axis& axis) {
    if (axis.extent == 1) return;
    if (axes_.empty()) axes_.push_back({1, 1, 1});
    Axis& inner = axes_.back();
    if (axis.source == inner.extent * inner.source && axis.target == inner.extent * inner.target) {
      inner.extent *= axis.extent;
    } else {
      axes_.push_back(axis);
    }
  }

  // body(source offset, target offset, count) for every contiguous run.
  template <class Body>
  void for_runs(const sdk::Call& call, const Body& body) const {
    if (axes_.empty()) return body(source_offset_, target_offset_, 1);
    int64_t runs = 1;
    for (size_t i = 1; i < axes_.size(); ++i) runs *= axes_[i].extent;
    cpu::for_items(call.threads, runs, axes_[0].extent, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) {
        int64_t from = source_offset_, to = target_offset_, rest = run;
        for (size_t i = 1; i < axes_.size(); ++i) {
          const int64_t at = rest % axes_[i].extent;
          rest /= axes_[i].extent;
          from += at * axes_[i].source;
          to += at * axes_[i].target;
        }
        body(from, to, axes_[0].extent);
      }
    });
  }

  int64_t source_offset_ = 0, target_offset_ = 0;
  std::vector<Axis> axes_;  // innermost first, which is contiguous
};

}  // namespace tandem::layers
