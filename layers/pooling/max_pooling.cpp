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

#include "plugins/cpu/bfloat16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using cpu::bfloat16;

using cpu::HWY_NAMESPACE::load;
using cpu::HWY_NAMESPACE::store_rounded;

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
template <class D, bool Saves, class T>
void forward_window(const MaxPooling& p, const Range& rows, int64_t top, int64_t column, const T* x,
                    T* y, uint8_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<uint8_t, D> bytes;
  constexpr int64_t lanes = hn::MaxLanes(D());
  const Range columns = pixels_of(p.w, column);
  const int64_t left = column * p.w.stride - p.w.pad;
  const int64_t first = (rows.begin * p.w.input + columns.begin) * p.block;
  const int64_t first_place = (rows.begin - top) * p.w.kernel + columns.begin - left;
  for (int64_t channel = 0; channel < p.block; channel += lanes) {
    const int64_t lane = std::min(channel, p.block - lanes);
    auto most = load(d, x + first + lane);
    auto place = hn::Set(integers, static_cast<int32_t>(first_place));
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      const T* line = x + h * p.w.input * p.block + lane;
      const int64_t line_place = (h - top) * p.w.kernel - left;
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const auto value = load(d, line + w * p.block);
        const auto is_more = hn::Or(hn::Gt(value, most), hn::IsNaN(value));
        most = hn::IfThenElse(is_more, value, most);
        if constexpr (Saves) {
          place = hn::IfThenElse(hn::RebindMask(integers, is_more),
                                 hn::Set(integers, static_cast<int32_t>(line_place + w)), place);
        }
      }
    }
    store_rounded(d, most, y + lane);
    if constexpr (Saves) hn::StoreU(hn::DemoteTo(bytes, place), bytes, places + lane);
  }
}

// Square windows that lie in the image, of constant size: the maxima first, then their places, so
// that no comparison waits for the one before it. Returns false if one of the elements is NaN.
template <class D, bool Saves, int Edge, class T>
HWY_INLINE bool forward_square(const T* x, int64_t row, int64_t block, T* y, uint8_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<uint8_t, D> bytes;
  auto most = load(d, x), sum = hn::Zero(d);
  for (int h = 0; h < Edge; ++h) {
    for (int w = 0; w < Edge; ++w) {
      const auto value = load(d, x + h * row + w * block);
      most = hn::Max(most, value);
      sum = hn::Or(sum, hn::VecFromMask(d, hn::IsNaN(value)));
    }
  }
  if (!hn::AllFalse(d, hn::IsNaN(sum))) return false;
  store_rounded(d, most, y);
  if constexpr (Saves) {
    auto place = hn::Zero(integers);
    for (int i = Edge * Edge - 1; i >= 0; --i) {
      const auto value = load(d, x + i / Edge * row + i % Edge * block);
      place = hn::IfThenElse(hn::RebindMask(integers, hn::Eq(value, most)), hn::Set(integers, i),
                             place);
    }
    hn::StoreU(hn::DemoteTo(bytes, place), bytes, places);
  }
  return true;
}

template <class D, bool Saves, int Edge, class T>
void forward_squares(const MaxPooling& p, const Range& rows, int64_t top, const T* x, T* y,
                     uint8_t* places) {
  constexpr int64_t lanes = hn::MaxLanes(D());
  const int64_t block = p.block, row = p.w.input * block, stride = p.w.stride, pad = p.w.pad;
  const int64_t input = p.w.input, output = p.w.output;
  const bool is_inside = rows.end - rows.begin == Edge;
  for (int64_t column = 0; column < output; ++column, y += block) {
    const int64_t left = column * stride - pad;
    bool is_done = is_inside && left >= 0 && left + Edge <= input;
    const T* first = x + top * row + left * block;
    for (int64_t channel = 0; is_done && channel < block; channel += lanes) {
      const int64_t lane = std::min(channel, block - lanes);
      is_done = forward_square<D, Saves, Edge>(first + lane, row, block, y + lane,
                                               Saves ? places + lane : nullptr);
    }
    if (!is_done) forward_window<D, Saves>(p, rows, top, column, x, y, places);
    if constexpr (Saves) places += block;
  }
}

template <class D, bool Saves, class T>
void forward_row(const MaxPooling& p, int64_t row, const T* x, T* y, uint8_t* places) {
  const Range rows = pixels_of(p.h, row);
  const int64_t top = row * p.h.stride - p.h.pad, first = row * p.w.output * p.block;
  y += first;
  if constexpr (Saves) places += first;
  if (p.h.kernel == 3 && p.w.kernel == 3) {
    return forward_squares<D, Saves, 3>(p, rows, top, x, y, places);
  }
  if (p.h.kernel == 2 && p.w.kernel == 2) {
    return forward_squares<D, Saves, 2>(p, rows, top, x, y, places);
  }
  for (int64_t column = 0; column < p.w.output; ++column, y += p.block) {
    forward_window<D, Saves>(p, rows, top, column, x, y, places);
    if constexpr (Saves) places += p.block;
  }
}

// Adds the gradients of a row of windows to those pixels of `dx`, an input row, that were their
// maxima. `first_place` is that of the row's first pixel in these windows.
template <class D, class T>
void add_windows(const MaxPooling& p, int64_t first_place, const T* dy, const uint8_t* places,
                 float* dx) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<uint8_t, D> bytes;
  constexpr int64_t lanes = hn::MaxLanes(D());
  const int64_t block = p.block, input = p.w.input, kernel = p.w.kernel, stride = p.w.stride;
  int64_t left = -p.w.pad;
  for (int64_t column = 0; column < p.w.output; ++column, left += stride) {
    const int64_t begin = std::max<int64_t>(0, -left), end = std::min(kernel, input - left);
    for (int64_t channel = 0; channel < block; channel += lanes) {
      const int64_t lane = std::min(channel, block - lanes);
      auto place = hn::PromoteTo(integers, hn::LoadU(bytes, places + lane));
      // Channels that the vector before this one had, too.
      if (lane < channel) {
        const auto had = hn::FirstN(integers, static_cast<size_t>(channel - lane));
        place = hn::IfThenElse(had, hn::Set(integers, -1), place);
      }
      const auto gradient = load(d, dy + lane);
      float* pixel = dx + (left + begin) * block + lane;
      for (int64_t k = begin; k < end; ++k, pixel += block) {
        const auto is_here =
            hn::Eq(place, hn::Set(integers, static_cast<int32_t>(first_place + k)));
        const auto added = hn::IfThenElseZero(hn::RebindMask(d, is_here), gradient);
        hn::StoreU(hn::Add(hn::LoadU(d, pixel), added), d, pixel);
      }
    }
    dy += block;
    places += block;
  }
}

template <class D, class T>
void backward_row(const MaxPooling& p, int64_t row, const T* dy, const uint8_t* places, float* dx) {
  std::fill_n(dx, p.w.input * p.block, 0.0F);
  const Range rows = windows_of(p.h, row);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    const int64_t first_place = (row + p.h.pad - h * p.h.stride) * p.w.kernel;
    const int64_t from = h * p.w.output * p.block;
    add_windows<D>(p, first_place, dy + from, places + from, dx);
  }
}

template <class D, class T>
void forward_row_of(const MaxPooling& p, int64_t row, const T* x, T* y, uint8_t* places) {
  places == nullptr ? forward_row<D, false>(p, row, x, y, places)
                    : forward_row<D, true>(p, row, x, y, places);
}

// The target's vectors, or shorter ones.
using Long = hn::CappedTag<float, 16>;
using Middle = hn::CappedTag<float, 8>;
using Short = hn::CappedTag<float, fewest_channels>;

template <class T>
void forward(const MaxPooling& p, int64_t row, const T* x, T* y, uint8_t* places) {
  p.block >= 16  ? forward_row_of<Long>(p, row, x, y, places)
  : p.block >= 8 ? forward_row_of<Middle>(p, row, x, y, places)
                 : forward_row_of<Short>(p, row, x, y, places);
}

template <class T>
void backward(const MaxPooling& p, int64_t row, const T* dy, const uint8_t* places, float* dx) {
  p.block >= 16  ? backward_row<Long>(p, row, dy, places, dx)
  : p.block >= 8 ? backward_row<Middle>(p, row, dy, places, dx)
                 : backward_row<Short>(p, row, dy, places, dx);
}

const MaxPoolingKernels* table() {
  static const MaxPoolingKernels kernels{hwy::TargetName(HWY_TARGET),
                                         {forward<float>, backward<float>},
                                         {forward<bfloat16>, backward<bfloat16>}};
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
