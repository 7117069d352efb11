// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/convolution/depthwise_kernels.h"

#include <algorithm>
#include <utility>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/convolution/depthwise_kernels.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::depthwise::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most a block's channels. If they do not divide a block, the last one overlaps the
// one before it.
using D = hn::CappedTag<float, fewest_channels>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = hn::MaxLanes(D());

HWY_INLINE bool has(const Line& line, const Tap& tap, int64_t pixel) {
  const int64_t at = tap.first + pixel * line.source_step;
  return at >= 0 && at < line.source_width;
}

// ---- images

template <int... I>
HWY_INLINE void add_taps(Vector* sums, Vector weight, const float* source, int64_t step,
                         std::integer_sequence<int, I...>) {
  ((sums[I] = hn::MulAdd(weight, hn::LoadU(D(), source + I * step), sums[I])), ...);
}

template <int... I>
HWY_INLINE void store(const Vector* sums, float* target, int64_t step,
                      std::integer_sequence<int, I...>) {
  (hn::StoreU(sums[I], D(), target + I * step), ...);
}

// Pixels from `pixel` on that have all taps.
template <int Count>
HWY_INLINE void convolve_pixels(const Line& line, int64_t block, int64_t pixel, const float* source,
                                const float* weights, Vector start, float* target) {
  using All = std::make_integer_sequence<int, Count>;
  Vector sums[Count];
  for (int i = 0; i < Count; ++i) sums[i] = start;
  const int64_t step = line.source_step * block, skipped = pixel * line.source_step;
  for (int64_t i = 0; i < line.tap_count; ++i) {
    const Tap& tap = line.taps[i];
    add_taps(sums, hn::LoadU(D(), weights + tap.weight * block),
             source + (tap.row + tap.first + skipped) * block, step, All());
  }
  store(sums, target + (line.target + pixel * line.target_step) * block, line.target_step * block,
        All());
}

HWY_INLINE void convolve_pixel(const Line& line, int64_t block, int64_t pixel, const float* source,
                               const float* weights, Vector start, float* target) {
  Vector sum = start;
  for (int64_t i = 0; i < line.tap_count; ++i) {
    const Tap& tap = line.taps[i];
    if (!has(line, tap, pixel)) continue;
    const float* value = source + (tap.row + tap.first + pixel * line.source_step) * block;
    sum = hn::MulAdd(hn::LoadU(D(), weights + tap.weight * block), hn::LoadU(D(), value), sum);
  }
  hn::StoreU(sum, D(), target + (line.target + pixel * line.target_step) * block);
}

void convolve(const Line& line, int64_t block, const float* source, const float* weights,
              const float* bias, float* target) {
  constexpr int at_once = 6;
  for (int64_t channel = 0; channel < block; channel += lanes) {
    const int64_t first = std::min(channel, block - lanes);
    const Vector start = bias == nullptr ? hn::Zero(D()) : hn::LoadU(D(), bias + first);
    const float *from = source + first, *weight = weights + first;
    float* to = target + first;
    int64_t pixel = 0;
    for (; pixel < line.begin; ++pixel) {
      convolve_pixel(line, block, pixel, from, weight, start, to);
    }
    for (; pixel + at_once <= line.end; pixel += at_once) {
      convolve_pixels<at_once>(line, block, pixel, from, weight, start, to);
    }
    for (; pixel + 2 <= line.end; pixel += 2) {
      convolve_pixels<2>(line, block, pixel, from, weight, start, to);
    }
    for (; pixel < line.count; ++pixel) {
      convolve_pixel(line, block, pixel, from, weight, start, to);
    }
  }
}

// ---- weight gradients

template <int... I>
HWY_INLINE void add_products(Vector* sums, Vector gradient, const float* const* sources,
                             int64_t offset, std::integer_sequence<int, I...>) {
  ((sums[I] = hn::MulAdd(gradient, hn::LoadU(D(), sources[I] + offset), sums[I])), ...);
}

// A tap's products with pixels [begin, end), of which some do not have it.
HWY_INLINE Vector add_edge(const Line& line, const Tap& tap, int64_t block, int64_t begin,
                           int64_t end, const float* source, const float* gradient, Vector sum) {
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    if (!has(line, tap, pixel)) continue;
    sum = hn::MulAdd(hn::LoadU(D(), gradient + pixel * block),
                     hn::LoadU(D(), source + pixel * line.source_step * block), sum);
  }
  return sum;
}

// `Count` taps from `first_tap` on.
template <int Count>
HWY_INLINE void sum_taps(const Line& line, int64_t block, int64_t first_tap, const float* source,
                         const float* gradient, float* sums_of_all) {
  using All = std::make_integer_sequence<int, Count>;
  Vector sums[Count];
  const float* sources[Count];
  const Tap* taps = line.taps + first_tap;
  for (int i = 0; i < Count; ++i) {
    sums[i] = hn::Zero(D());
    sources[i] = source + (taps[i].row + taps[i].first) * block;
  }
  const int64_t step = line.source_step * block, begin = line.begin, end = line.end;
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    add_products(sums, hn::LoadU(D(), gradient + pixel * block), sources, pixel * step, All());
  }
  for (int i = 0; i < Count; ++i) {
    Vector sum = add_edge(line, taps[i], block, 0, begin, sources[i], gradient, sums[i]);
    sum = add_edge(line, taps[i], block, end, line.count, sources[i], gradient, sum);
    float* target = sums_of_all + taps[i].weight * lanes;
    hn::StoreU(hn::Add(hn::LoadU(D(), target), sum), D(), target);
  }
}

void sum(const Line& line, int64_t block, const float* source, const float* gradient, float* sums) {
  const float* from = gradient + line.target * block;
  int64_t tap = 0;
  for (; tap + 9 <= line.tap_count; tap += 9) sum_taps<9>(line, block, tap, source, from, sums);
  for (; tap + 3 <= line.tap_count; tap += 3) sum_taps<3>(line, block, tap, source, from, sums);
  for (; tap < line.tap_count; ++tap) sum_taps<1>(line, block, tap, source, from, sums);
}

void sum_gradient(const Line& line, int64_t block, const float* gradient, float* bias) {
  Vector sum = hn::Zero(D());
  for (int64_t pixel = 0; pixel < line.count; ++pixel) {
    sum = hn::Add(sum, hn::LoadU(D(), gradient + (line.target + pixel) * block));
  }
  hn::StoreU(hn::Add(hn::LoadU(D(), bias), sum), D(), bias);
}

const Kernels* table() {
  static const Kernels kernels{hwy::TargetName(HWY_TARGET), lanes, convolve, sum, sum_gradient};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers::depthwise {

HWY_EXPORT(table);

const Kernels& kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers::depthwise
#endif
