// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/pooling/max_pooling.h"

#include <algorithm>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/pooling/max_pooling.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Range {
  int64_t begin, end;
};

// The pixels of window `i` that are in the image.
HWY_INLINE Range pixels_of(const MaxPooling::Axis& a, int64_t i) {
  const int64_t begin = i * a.stride - a.pad;
  return {std::max<int64_t>(begin, 0), std::min(begin + a.kernel, a.input)};
}

// The windows that contain the pixel.
HWY_INLINE Range windows_of(const MaxPooling::Axis& a, int64_t pixel) {
  const int64_t place = pixel + a.pad;
  return {place < a.kernel ? 0 : (place - a.kernel) / a.stride + 1,
          std::min(a.output, place / a.stride + 1)};
}

// D: vectors of at most a block's channels. If they do not divide the block, the last one overlaps
// the one before it, and both compute the same values for what they share.
template <class D, bool Saves>
void forward_row(const MaxPooling& p, int64_t row, const float* x, float* y, uint8_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<uint8_t, D> bytes;
  constexpr int64_t lanes = hn::MaxLanes(D());
  const Range rows = pixels_of(p.h, row);
  const int64_t top = row * p.h.stride - p.h.pad;
  for (int64_t column = 0; column < p.w.output; ++column) {
    const Range columns = pixels_of(p.w, column);
    const int64_t left = column * p.w.stride - p.w.pad;
    const int64_t output = (row * p.w.output + column) * p.block;
    const int64_t first = (rows.begin * p.w.input + columns.begin) * p.block;
    const int64_t first_place = (rows.begin - top) * p.w.kernel + columns.begin - left;
    for (int64_t channel = 0; channel < p.block; channel += lanes) {
      const int64_t lane = std::min(channel, p.block - lanes);
      auto most = hn::LoadU(d, x + first + lane);
      auto place = hn::Set(integers, static_cast<int32_t>(first_place));
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        const float* line = x + h * p.w.input * p.block + lane;
        const int64_t line_place = (h - top) * p.w.kernel - left;
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const auto value = hn::LoadU(d, line + w * p.block);
          const auto is_more = hn::Or(hn::Gt(value, most), hn::IsNaN(value));
          most = hn::IfThenElse(is_more, value, most);
          if constexpr (Saves) {
            place = hn::IfThenElse(hn::RebindMask(integers, is_more),
                                   hn::Set(integers, static_cast<int32_t>(line_place + w)), place);
          }
        }
      }
      hn::StoreU(most, d, y + output + lane);
      if constexpr (Saves) hn::StoreU(hn::DemoteTo(bytes, place), bytes, places + output + lane);
    }
  }
}

template <class D>
void backward_row(const MaxPooling& p, int64_t row, const float* dy, const uint8_t* places,
                  float* dx) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<uint8_t, D> bytes;
  constexpr int64_t lanes = hn::MaxLanes(D());
  const Range rows = windows_of(p.h, row);
  for (int64_t column = 0; column < p.w.input; ++column) {
    const Range columns = windows_of(p.w, column);
    for (int64_t channel = 0; channel < p.block; channel += lanes) {
      const int64_t lane = std::min(channel, p.block - lanes);
      auto sum = hn::Zero(d);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        const int64_t place_row = (row + p.h.pad - h * p.h.stride) * p.w.kernel;
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const int64_t output = (h * p.w.output + w) * p.block + lane;
          const int64_t place = place_row + column + p.w.pad - w * p.w.stride;
          const auto saved = hn::PromoteTo(integers, hn::LoadU(bytes, places + output));
          const auto is_here = hn::Eq(saved, hn::Set(integers, static_cast<int32_t>(place)));
          sum = hn::Add(sum,
                        hn::IfThenElseZero(hn::RebindMask(d, is_here), hn::LoadU(d, dy + output)));
        }
      }
      hn::StoreU(sum, d, dx + (row * p.w.input + column) * p.block + lane);
    }
  }
}

template <class D>
void forward_row_of(const MaxPooling& p, int64_t row, const float* x, float* y, uint8_t* places) {
  places == nullptr ? forward_row<D, false>(p, row, x, y, places)
                    : forward_row<D, true>(p, row, x, y, places);
}

// The target's vectors, or shorter ones.
using Long = hn::CappedTag<float, 16>;
using Middle = hn::CappedTag<float, 8>;
using Short = hn::CappedTag<float, fewest_channels>;

void forward(const MaxPooling& p, int64_t row, const float* x, float* y, uint8_t* places) {
  p.block >= 16  ? forward_row_of<Long>(p, row, x, y, places)
  : p.block >= 8 ? forward_row_of<Middle>(p, row, x, y, places)
                 : forward_row_of<Short>(p, row, x, y, places);
}

void backward(const MaxPooling& p, int64_t row, const float* dy, const uint8_t* places, float* dx) {
  p.block >= 16  ? backward_row<Long>(p, row, dy, places, dx)
  : p.block >= 8 ? backward_row<Middle>(p, row, dy, places, dx)
                 : backward_row<Short>(p, row, dy, places, dx);
}

const MaxPoolingKernels* table() {
  static const MaxPoolingKernels kernels{hwy::TargetName(HWY_TARGET), forward, backward};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers {

HWY_EXPORT(table);

const MaxPoolingKernels& max_pooling_kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers
#endif
