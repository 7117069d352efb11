// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/convolution/tap_products.h"

#include <utility>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/convolution/tap_products.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::taps::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

// The sums of a product: as many as the registers hold, besides a row of b and a value of a.
constexpr int tap_block = lanes == 16 ? 8 : 4;
constexpr int panel = 3;

template <int... I>
HWY_INLINE void load(Vector* x, const float* source, int64_t stride,
                     std::integer_sequence<int, I...>) {
  ((x[I] = hn::LoadU(D(), source + I * stride)), ...);
}

template <int Tap, int... Column>
HWY_INLINE void add_tap(Vector* sums, const Vector* b, float a,
                        std::integer_sequence<int, Column...>) {
  constexpr int width = sizeof...(Column);
  const Vector value = hn::Set(D(), a);
  ((sums[Tap * width + Column] = hn::MulAdd(value, b[Column], sums[Tap * width + Column])), ...);
}

template <int Width, int... Tap>
HWY_INLINE void add_pixel(Vector* sums, const float* a, const int64_t* taps, const float* b,
                          int64_t b_chunk, std::integer_sequence<int, Tap...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector line[Width];
  load(line, b, b_chunk, Columns());
  (add_tap<Tap>(sums, line, a[taps[Tap]], Columns()), ...);
}

template <int... I>
HWY_INLINE void clear(Vector* sums, std::integer_sequence<int, I...>) {
  ((sums[I] = hn::Zero(D())), ...);
}

// The sums of one call are added to those before them, so that a sum over a batch is one of parts,
// which keeps rounding errors small.
template <int... I>
HWY_INLINE void store(const Vector* sums, float* c, bool adds, std::integer_sequence<int, I...>) {
  if (adds) {
    (hn::StoreU(hn::Add(hn::LoadU(D(), c + I * lanes), sums[I]), D(), c + I * lanes), ...);
  } else {
    (hn::StoreU(sums[I], D(), c + I * lanes), ...);
  }
}

template <int Taps, int Width>
HWY_INLINE void multiply_block(const Product& p, int64_t tap) {
  using All = std::make_integer_sequence<int, Taps * Width>;
  Vector sums[Taps * Width];
  clear(sums, All());
  int64_t taps[Taps];
  for (int i = 0; i < Taps; ++i) taps[i] = p.taps[tap + i];
  for (int64_t line = 0; line < p.lines; ++line) {
    const float *a = p.a + line * p.a_line, *b = p.b + line * p.b_line;
    for (int64_t i = 0; i < p.pixels; ++i, a += p.a_pixel, b += p.b_pixel) {
      add_pixel<Width>(sums, a, taps, b, p.b_chunk, std::make_integer_sequence<int, Taps>());
    }
  }
  store(sums, p.c + tap * Width * lanes, p.adds, All());
}

// Taps from `tap` on: blocks of `Taps`, and what is left in smaller ones.
template <int Taps, int Width>
void multiply_from(const Product& p, int64_t tap) {
  for (; tap + Taps <= p.tap_count; tap += Taps) multiply_block<Taps, Width>(p, tap);
  if constexpr (Taps > 1) {
    if (tap < p.tap_count) multiply_from<Taps / 2, Width>(p, tap);
  }
}

void multiply(const Product& p) {
  p.chunks == 3   ? multiply_from<tap_block, 3>(p, 0)
  : p.chunks == 2 ? multiply_from<tap_block, 2>(p, 0)
                  : multiply_from<tap_block, 1>(p, 0);
}

void sum_pixels(const Product& p, float* sums) {
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    Vector sum = hn::Zero(D());
    for (int64_t line = 0; line < p.lines; ++line) {
      const float* b = p.b + line * p.b_line + chunk * p.b_chunk;
      for (int64_t i = 0; i < p.pixels; ++i) sum = hn::Add(sum, hn::LoadU(D(), b + i * p.b_pixel));
    }
    float* target = sums + chunk * lanes;
    hn::StoreU(p.adds ? hn::Add(hn::LoadU(D(), target), sum) : sum, D(), target);
  }
}

const Kernels* table() {
  static const Kernels kernels{hwy::TargetName(HWY_TARGET), lanes, panel, multiply, sum_pixels};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::taps::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers::taps {

HWY_EXPORT(table);

const Kernels& kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers::taps
#endif
