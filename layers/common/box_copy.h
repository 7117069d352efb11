// Copies a box from one tensor to another of the same layout, on the cpu: all rows of the batch, in
// runs that are as long as the layouts allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layers/common/box.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

// The layouts whose channel blocks are not divided at any of the `cuts`; the same for input and
// output.
inline sdk::LayoutOptions layouts_cut_at(const std::vector<int64_t>& places) {
  const auto fits = [&](int64_t block) {
    return std::all_of(places.begin(), places.end(),
                       [block](int64_t place) { return place % block == 0; });
  };
  return sdk::any_layout(fits(16) ? 16 : fits(8) ? 8 : 1);
}

class BoxCopy {
 public:
  // The arguments of Box, with one layout for both tensors.
  BoxCopy(int32_t layout, const sdk::Shape& source, const Extents& source_begin,
          const sdk::Shape& target, const Extents& target_begin, const Extents& extent,
          const Extents& step = {1, 1, 1, 1})
      : box_(layout, source, source_begin, target, target_begin, extent, step) {}

  [[nodiscard]] BoxCopy reversed() const { return BoxCopy(box_.reversed()); }

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
  explicit BoxCopy(const Box& box) : box_(box) {}

  // body(source offset, target offset, count) for every contiguous run.
  template <class Body>
  void for_runs(const sdk::Call& call, const Body& body) const {
    if (box_.count == 0) return body(box_.source_offset, box_.target_offset, 1);
    const Box::Axis* axes = box_.axes;
    const int64_t runs = box_.elements() / axes[0].extent;
    cpu::for_items(call.threads, runs, axes[0].extent, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) {
        int64_t from = box_.source_offset, to = box_.target_offset, rest = run;
        for (int i = 1; i < box_.count; ++i) {
          const int64_t at = rest % axes[i].extent;
          rest /= axes[i].extent;
          from += at * axes[i].source;
          to += at * axes[i].target;
        }
        body(from, to, axes[0].extent);
      }
    });
  }

  Box box_;
};

}  // namespace tandem::layers
