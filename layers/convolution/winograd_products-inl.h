// Products of Winograd's transformed tensors and how their operands are stored, compiled once for
// each of Highway's targets. An operand consists of words of 32 bits: a float32, or two bfloat16
// that are neighbors in depth, whose two products AVX512_BF16 adds to a float32 in one
// instruction.
#if defined(TANDEM_WINOGRAD_PRODUCTS) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_WINOGRAD_PRODUCTS
#undef TANDEM_WINOGRAD_PRODUCTS
#else
#define TANDEM_WINOGRAD_PRODUCTS
#endif

#include <hwy/highway.h>

#include <utility>

#include "layers/convolution/winograd_data.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::winograd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

// The accumulators of a product: as many as the registers hold, besides a row of b and a word of a.
// Rows divide the lanes.
constexpr int row_block = lanes == 16 ? 8 : 4;
constexpr int panel = 3;
static_assert(lanes % row_block == 0);

struct Float32 {
  static constexpr int64_t depths_in_word = 1;
  static HWY_INLINE Vector add_product(Vector a, Vector b, Vector sum) {
    return hn::MulAdd(a, b, sum);
  }
};

// The target is AVX-512; whether the CPU has these two instructions is for the caller to know.
// Highway 1.0 has no target with them, so they are written down. They take denormals as 0.
#if HWY_TARGET == HWY_AVX3
struct Bfloat16 {
  static constexpr int64_t depths_in_word = 2;
  static HWY_INLINE Vector add_product(Vector a, Vector b, Vector sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
  using Halves = hn::Rebind<uint16_t, D>;
  // To nearest, ties to even; NaN stays NaN.
  static HWY_INLINE hn::Vec<Halves> round(Vector vector) {
    hn::Vec<Halves> result;
    asm("vcvtneps2bf16 %1, %0" : "=v"(result.raw) : "v"(vector.raw));
    return result;
  }
};
#endif

template <int... I>
HWY_INLINE void load_words(Vector* x, const float* source, int64_t stride,
                           std::integer_sequence<int, I...>) {
  ((x[I] = hn::LoadU(D(), source + I * stride)), ...);
}

template <class Element, int Row, int... Column>
HWY_INLINE void add_row(Vector* sums, const Vector* b, const float* a,
                        std::integer_sequence<int, Column...>) {
  constexpr int width = sizeof...(Column);
  const Vector value = hn::Set(D(), *a);
  ((sums[Row * width + Column] =
        Element::add_product(value, b[Column], sums[Row * width + Column])),
   ...);
}

template <class Element, int Width, int... Row>
HWY_INLINE void add_step(Vector* sums, const float* a, int64_t a_row, const float* b,
                         int64_t b_chunk, std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector line[Width];
  load_words(line, b, b_chunk, Columns());
  (add_row<Element, Row>(sums, line, a + Row * a_row, Columns()), ...);
}

template <int Width, int... I>
HWY_INLINE void start_sums(Vector* sums, const float* c, int64_t c_chunk, bool adds,
                           std::integer_sequence<int, I...>) {
  ((sums[I] = adds ? hn::LoadU(D(), c + I % Width * c_chunk + I / Width * lanes) : hn::Zero(D())),
   ...);
}

template <int Width, int... I>
HWY_INLINE void store_sums(const Vector* sums, float* c, int64_t c_chunk,
                           std::integer_sequence<int, I...>) {
  (hn::StoreU(sums[I], D(), c + I % Width * c_chunk + I / Width * lanes), ...);
}

HWY_INLINE void fetch_to_l2(const float* address) {
  constexpr int for_reading = 0, locality = 2;
  __builtin_prefetch(address, for_reading, locality);
}

// `Width` chunks of columns by row_block rows. The word of a row and a depth is at
// a + row * ARow + depth * ADepth, where depths are divided into blocks of `block`, p.a_chunk
// apart. Meanwhile the chunk `ahead` of b is fetched.
template <class Element, int Width, int64_t ARow, int64_t ADepth>
HWY_INLINE void multiply_block(const Product& p, const float* a, int64_t block, const float* b,
                               float* c, const float* ahead) {
  using Rows = std::make_integer_sequence<int, row_block>;
  using All = std::make_integer_sequence<int, row_block * Width>;
  Vector sums[row_block * Width];
  start_sums<Width>(sums, c, p.c_chunk, p.adds, All());
  for (int64_t depth = 0; depth < p.depth; depth += block, a += p.a_chunk) {
    const float* step = a;
    for (int64_t i = 0; i < block; ++i, step += ADepth, b += lanes, ahead += lanes) {
      fetch_to_l2(ahead);
      add_step<Element, Width>(sums, step, ARow, b, p.b_chunk, Rows());
    }
  }
  store_sums<Width>(sums, c, p.c_chunk, All());
}

// The chunk of b that a block of rows fetches while it is multiplied, so that the next panel's
// first rows do not wait for the memory. The first block fetches the next panel's first chunk, and
// so on; blocks beyond its chunks fetch what they multiply by, which is in the cache. The next
// panel may have fewer chunks: then addresses behind it are fetched, which does nothing.
template <int Width>
HWY_INLINE const float* chunk_ahead(const Product& p, int64_t chunk, int64_t block) {
  const float* panel_of_b = p.b + chunk * p.b_chunk;
  if (block >= panel) return panel_of_b;
  const bool is_last = chunk + Width >= p.columns.end;
  return (is_last ? p.next_b : panel_of_b + Width * p.b_chunk) + block * p.b_chunk;
}

template <class Element, int Width>
void multiply_panel_by_channels(const Product& p, int64_t chunk) {
  constexpr int64_t words = lanes / Element::depths_in_word;  // of an item
  for (int64_t row = 0; row < p.rows; row += row_block) {
    multiply_block<Element, Width, words, 1>(p, p.a + row * words, words, p.b + chunk * p.b_chunk,
                                             p.c + chunk * p.c_chunk + row * lanes,
                                             chunk_ahead<Width>(p, chunk, row / row_block));
  }
}

template <class Element, int Width>
void multiply_panel_by_items(const Product& p, int64_t chunk) {
  for (int64_t row = 0; row < p.rows; row += row_block) {
    const float* b = p.b + chunk * p.b_chunk;
    multiply_block<Element, Width, 1, lanes>(p, p.a + row / lanes * p.a_chunk + row % lanes,
                                             p.depth, b, p.c + chunk * p.c_chunk + row * lanes, b);
  }
}

using Panels = void (*)(const Product& product, int64_t chunk);

// Panels whose widths differ by at most one.
inline void multiply_panels(const Product& p, const Panels* panels) {
  const int64_t chunks = p.columns.end - p.columns.begin;
  const int64_t count = (chunks + panel - 1) / panel;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * chunks / count, end = (i + 1) * chunks / count;
    panels[end - begin - 1](p, p.columns.begin + begin);
  }
}

template <class Element>
void multiply_channels(const Product& p) {
  constexpr Panels panels[panel] = {multiply_panel_by_channels<Element, 1>,
                                    multiply_panel_by_channels<Element, 2>,
                                    multiply_panel_by_channels<Element, 3>};
  multiply_panels(p, panels);
}

template <class Element>
void multiply_items(const Product& p) {
  constexpr Panels panels[panel] = {multiply_panel_by_items<Element, 1>,
                                    multiply_panel_by_items<Element, 2>,
                                    multiply_panel_by_items<Element, 3>};
  multiply_panels(p, panels);
}

}  // namespace tandem::layers::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
