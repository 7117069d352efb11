// Compiled once for each of Highway's targets (plugins/cpu/highway.h).
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

using D = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<D>;
using Bytes = hn::Rebind<uint8_t, D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

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

template <bool Saves>
void forward_row(const MaxPooling& p, int64_t row, const float* x, float* y, uint8_t* places) {
  const D d;
  const Integers integers;
  const Range rows = pixels_of(p.h, row);
  const int64_t top = row * p.h.stride - p.h.pad;
  for (int64_t column = 0; column < p.w.output; ++column) {
    const Range columns = pixels_of(p.w, column);
    const int64_t left = column * p.w.stride - p.w.pad;
    const int64_t output = (row * p.w.output + column) * p.block;
    for (int64_t lane = 0; lane < p.block; lane += lanes) {
      auto most = hn::LoadU(d, x + (rows.begin * p.w.input + columns.begin) * p.block + lane);
      auto place = hn::Set(
          integers, static_cast<int32_t>((rows.begin - top) * p.w.kernel + columns.begin - left));
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
      if constexpr (Saves) {
        hn::StoreU(hn::DemoteTo(Bytes(), place), Bytes(), places + output + lane);
      }
    }
  }
}

void forward(const MaxPooling& p, int64_t row, const float* x, float* y, uint8_t* places) {
  places == nullptr ? forward_row<false>(p, row, x, y, places)
                    : forward_row<true>(p, row, x, y, places);
}

void backward(const MaxPooling& p, int64_t row, const float* dy, const uint8_t* places, float* dx) {
  const D d;
  const Integers integers;
  const Range rows = windows_of(p.h, row);
  for (int64_t column = 0; column < p.w.input; ++column) {
    const Range columns = windows_of(p.w, column);
    for (int64_t lane = 0; lane < p.block; lane += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        const int64_t place_row = (row + p.h.pad - h * p.h.stride) * p.w.kernel;
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const int64_t output = (h * p.w.output + w) * p.block + lane;
          const int64_t place = place_row + column + p.w.pad - w * p.w.stride;
          const auto saved = hn::PromoteTo(integers, hn::LoadU(Bytes(), places + output));
          const auto is_here = hn::Eq(saved, hn::Set(integers, static_cast<int32_t>(place)));
          sum = hn::Add(sum,
                        hn::IfThenElseZero(hn::RebindMask(d, is_here), hn::LoadU(d, dy + output)));
        }
      }
      hn::StoreU(sum, d, dx + (row * p.w.input + column) * p.block + lane);
    }
  }
}

const MaxPoolingKernels* table() {
  static const MaxPoolingKernels kernels{lanes, forward, backward};
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
