// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/common/vector_products.h"

#include <utility>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/common/vector_products.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::vector_products::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

// The sums of a product: as many as the vector registers hold, besides a line of b and a value of
// a, since with few sums each waits for its last addition. On aarch64 the values of all rows are in
// vector registers, too. The places of more than 8 rows would not fit the other registers.
constexpr int panel = 3;
constexpr int sums_at_once = HWY_ARCH_ARM_A64 ? 18 : lanes == 16 ? 24 : 12;
constexpr int row_block(int chunks) {
  const int rows = sums_at_once / chunks;
  return rows < 8 ? rows : 8;
}

template <int... I>
HWY_INLINE void load(Vector* x, const float* source, int64_t stride,
                     std::integer_sequence<int, I...>) {
  ((x[I] = hn::LoadU(D(), source + I * stride)), ...);
}

template <int Row, int... Column>
HWY_INLINE void add_row(Vector* sums, const Vector* b, float a,
                        std::integer_sequence<int, Column...>) {
  constexpr int width = sizeof...(Column);
  const Vector value = hn::Set(D(), a);
  ((sums[Row * width + Column] = hn::MulAdd(value, b[Column], sums[Row * width + Column])), ...);
}

template <int Width, int... Row>
HWY_INLINE void add_step(Vector* sums, const float* a, const int64_t* rows, const float* b,
                         int64_t b_chunk, std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector line[Width];
  load(line, b, b_chunk, Columns());
  (add_row<Row>(sums, line, a[rows[Row]], Columns()), ...);
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

template <int Rows, int Width>
HWY_INLINE void multiply_block(const Product& p, int64_t row) {
  using All = std::make_integer_sequence<int, Rows * Width>;
  Vector sums[Rows * Width];
  clear(sums, All());
  int64_t rows[Rows];
  for (int i = 0; i < Rows; ++i) rows[i] = p.rows[row + i];
  for (int64_t line = 0; line < p.lines; ++line) {
    const float *a = p.a + line * p.a_line, *b = p.b + line * p.b_line;
    for (int64_t i = 0; i < p.steps; ++i, a += p.a_step, b += p.b_step) {
      add_step<Width>(sums, a, rows, b, p.b_chunk, std::make_integer_sequence<int, Rows>());
    }
  }
  store(sums, p.c + row * Width * lanes, p.adds, All());
}

// Rows from `row` on: blocks of `Rows`, and what is left in smaller ones.
template <int Rows, int Width>
void multiply_from(const Product& p, int64_t row) {
  for (; row + Rows <= p.row_count; row += Rows) multiply_block<Rows, Width>(p, row);
  if constexpr (Rows > 1) {
    if (row < p.row_count) multiply_from<Rows / 2, Width>(p, row);
  }
}

void multiply(const Product& p) {
  p.chunks == 3   ? multiply_from<row_block(3), 3>(p, 0)
  : p.chunks == 2 ? multiply_from<row_block(2), 2>(p, 0)
                  : multiply_from<row_block(1), 1>(p, 0);
}

// Sums of lines, and then of the lines' sums, which keeps rounding errors small.
void sum_columns(const Product& p, float* sums) {
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    Vector sum = hn::Zero(D());
    for (int64_t line = 0; line < p.lines; ++line) {
      const float* b = p.b + line * p.b_line + chunk * p.b_chunk;
      Vector of_line = hn::Zero(D());
      for (int64_t i = 0; i < p.steps; ++i) {
        of_line = hn::Add(of_line, hn::LoadU(D(), b + i * p.b_step));
      }
      sum = hn::Add(sum, of_line);
    }
    float* target = sums + chunk * lanes;
    hn::StoreU(p.adds ? hn::Add(hn::LoadU(D(), target), sum) : sum, D(), target);
  }
}

const Kernels* table() {
  static const Kernels kernels{hwy::TargetName(HWY_TARGET), lanes, panel, multiply, sum_columns};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::vector_products::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers::vector_products {

HWY_EXPORT(table);

const Kernels& kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers::vector_products
#endif
