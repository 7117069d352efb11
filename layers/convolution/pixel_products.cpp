// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/convolution/pixel_products.h"

#include <algorithm>
#include <utility>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/convolution/pixel_products.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::pixel_products::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

// Vectors for each of `rows` values that are used together: with the sums of all, a vector of each
// and one value they fill the registers, and with fewer sums each waits for its last addition.
constexpr int columns_of(int rows) {
  return rows == 4 ? 3 : rows == 3 ? 4 : rows == 2 ? 6 : 8;
}

template <int... I>
HWY_INLINE void clear(Vector* sums, std::integer_sequence<int, I...>) {
  ((sums[I] = hn::Zero(D())), ...);
}

template <int... I>
HWY_INLINE void load(Vector* x, const float* source, std::integer_sequence<int, I...>) {
  ((x[I] = hn::LoadU(D(), source + I * lanes)), ...);
}

template <int Row, int... Column>
HWY_INLINE void add_products(Vector* sums, Vector a, const Vector* b,
                             std::integer_sequence<int, Column...>) {
  constexpr int width = sizeof...(Column);
  ((sums[Row * width + Column] = hn::MulAdd(a, b[Column], sums[Row * width + Column])), ...);
}

// ---- images

template <int Width, int... Row>
HWY_INLINE void add_term(Vector* sums, const float* weights, const float* source,
                         std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector pixels[Width];
  load(pixels, source, Columns());
  (add_products<Row>(sums, hn::Set(D(), weights[Row]), pixels, Columns()), ...);
}

template <int... I>
HWY_INLINE void store(const Vector* sums, float* target, bool adds,
                      std::integer_sequence<int, I...>) {
  if (adds) {
    (hn::StoreU(hn::Add(hn::LoadU(D(), target + I * lanes), sums[I]), D(), target + I * lanes),
     ...);
  } else {
    (hn::StoreU(sums[I], D(), target + I * lanes), ...);
  }
}

// `Width` vectors of `Rows` channels.
template <int Rows, int Width>
HWY_INLINE void convolve_block(const Convolved& p, const float* weights, const float* source,
                               float* target) {
  Vector sums[Rows * Width];
  clear(sums, std::make_integer_sequence<int, Rows * Width>());
  for (int64_t i = 0; i < p.term_count; ++i) {
    add_term<Width>(sums, weights + i * Rows, source + p.terms[i],
                    std::make_integer_sequence<int, Rows>());
  }
  for (int row = 0; row < Rows; ++row) {
    store(sums + row * Width, target + row * p.target_plane, p.adds,
          std::make_integer_sequence<int, Width>());
  }
}

// All vectors of `Rows` channels from `vector` on.
template <int Rows, int Width = columns_of(Rows)>
void convolve_rows(const Convolved& p, const float* weights, float* target, int64_t vector,
                   int64_t end) {
  for (; vector + Width <= end; vector += Width) {
    convolve_block<Rows, Width>(p, weights, p.source + vector * lanes, target + vector * lanes);
  }
  if constexpr (Width > 1) {
    if (vector < end) convolve_rows<Rows, Width - 1>(p, weights, target, vector, end);
  }
}

void convolve_channels(const Convolved& p, int64_t channel, int64_t vector, int64_t end) {
  const int64_t count = std::min(channels_at_once, p.channels - channel);
  const float* weights = p.weights + channel * p.term_count;
  float* target = p.target + channel * p.target_plane;
  count == 4   ? convolve_rows<4>(p, weights, target, vector, end)
  : count == 3 ? convolve_rows<3>(p, weights, target, vector, end)
  : count == 2 ? convolve_rows<2>(p, weights, target, vector, end)
               : convolve_rows<1>(p, weights, target, vector, end);
}

// A few vectors at a time for all channels, so that what they read of the source stays in the
// cache.
void convolve(const Convolved& p) {
  constexpr int64_t vectors_at_once = 24;  // a multiple of each width
  for (int64_t vector = 0; vector < p.vectors; vector += vectors_at_once) {
    const int64_t end = std::min(vector + vectors_at_once, p.vectors);
    for (int64_t channel = 0; channel < p.channels; channel += channels_at_once) {
      convolve_channels(p, channel, vector, end);
    }
  }
}

// ---- weight gradients

template <int... I>
HWY_INLINE void load_terms(Vector* x, const float* source, const int64_t* terms,
                           std::integer_sequence<int, I...>) {
  ((x[I] = hn::LoadU(D(), source + terms[I])), ...);
}

template <int Width, int... Row>
HWY_INLINE void add_pixels(Vector* sums, const float* gradient, int64_t plane, const float* source,
                           const int64_t* terms, std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector pixels[Width];
  load_terms(pixels, source, terms, Columns());
  (add_products<Row>(sums, hn::LoadU(D(), gradient + Row * plane), pixels, Columns()), ...);
}

// The sums of `Rows` channels and `Width` terms.
template <int Rows, int Width>
HWY_INLINE void correlate_block(const Correlated& p, const float* gradient, const int64_t* terms,
                                float* target) {
  Vector sums[Rows * Width];
  clear(sums, std::make_integer_sequence<int, Rows * Width>());
  for (int64_t i = 0; i < p.vectors; ++i) {
    add_pixels<Width>(sums, gradient + i * lanes, p.gradient_plane, p.source + i * lanes, terms,
                      std::make_integer_sequence<int, Rows>());
  }
  for (int row = 0; row < Rows; ++row) {
    for (int column = 0; column < Width; ++column) {
      target[row * p.sums_of_channel + column] +=
          hn::GetLane(hn::SumOfLanes(D(), sums[row * Width + column]));
    }
  }
}

// All terms of `Rows` channels from `term` on.
template <int Rows, int Width = columns_of(Rows)>
void correlate_rows(const Correlated& p, int64_t channel, int64_t term) {
  for (; term + Width <= p.term_count; term += Width) {
    correlate_block<Rows, Width>(p, p.gradient + channel * p.gradient_plane, p.terms + term,
                                 p.sums + channel * p.sums_of_channel + term);
  }
  if constexpr (Width > 1) {
    if (term < p.term_count) correlate_rows<Rows, Width - 1>(p, channel, term);
  }
}

void correlate(const Correlated& p) {
  int64_t channel = 0;
  for (; channel + 4 <= p.channels; channel += 4) correlate_rows<4>(p, channel, 0);
  const int64_t left = p.channels - channel;
  if (left == 3) correlate_rows<3>(p, channel, 0);
  if (left == 2) correlate_rows<2>(p, channel, 0);
  if (left == 1) correlate_rows<1>(p, channel, 0);
}

// ---- copies

using Four = hn::FixedTag<float, channels_at_once>;
using FourVector = hn::Vec<Four>;

// Rows become columns.
HWY_INLINE void transpose(FourVector* x) {
  const hn::FixedTag<double, channels_at_once / 2> pairs;
  const auto a = hn::BitCast(pairs, hn::InterleaveLower(Four(), x[0], x[1]));
  const auto b = hn::BitCast(pairs, hn::InterleaveUpper(Four(), x[0], x[1]));
  const auto c = hn::BitCast(pairs, hn::InterleaveLower(Four(), x[2], x[3]));
  const auto d = hn::BitCast(pairs, hn::InterleaveUpper(Four(), x[2], x[3]));
  x[0] = hn::BitCast(Four(), hn::InterleaveLower(pairs, a, c));
  x[1] = hn::BitCast(Four(), hn::InterleaveUpper(pairs, a, c));
  x[2] = hn::BitCast(Four(), hn::InterleaveLower(pairs, b, d));
  x[3] = hn::BitCast(Four(), hn::InterleaveUpper(pairs, b, d));
}

void load_pixels(const float* image, int64_t step, int64_t count, float* planes, int64_t plane) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    FourVector x[4];
    for (int k = 0; k < 4; ++k) x[k] = hn::LoadU(Four(), image + (i + k) * step);
    transpose(x);
    for (int k = 0; k < 4; ++k) hn::StoreU(x[k], Four(), planes + k * plane + i);
  }
  for (; i < count; ++i) {
    for (int k = 0; k < 4; ++k) planes[k * plane + i] = image[i * step + k];
  }
}

void store_pixels(const float* planes, int64_t plane, int64_t count, const float* bias,
                  float* image, int64_t step) {
  const FourVector added = hn::LoadU(Four(), bias);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    FourVector x[4];
    for (int k = 0; k < 4; ++k) x[k] = hn::LoadU(Four(), planes + k * plane + i);
    transpose(x);
    for (int k = 0; k < 4; ++k) {
      hn::StoreU(hn::Add(x[k], added), Four(), image + (i + k) * step);
    }
  }
  for (; i < count; ++i) {
    for (int k = 0; k < 4; ++k) {
      image[i * step + k] = planes[k * plane + i] + bias[k];
    }
  }
}

float sum(const float* values, int64_t vectors) {
  Vector sum = hn::Zero(D());
  for (int64_t i = 0; i < vectors; ++i) sum = hn::Add(sum, hn::LoadU(D(), values + i * lanes));
  return hn::GetLane(hn::SumOfLanes(D(), sum));
}

const Kernels* table() {
  static const Kernels kernels{
      hwy::TargetName(HWY_TARGET), lanes, convolve, correlate, load_pixels, store_pixels, sum};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::pixel_products::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers::pixel_products {

HWY_EXPORT(table);

const Kernels& kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers::pixel_products
#endif
