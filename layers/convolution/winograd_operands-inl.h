// The transforms of one tile or kernel by Winograd's matrices, and how they are stored as operands
// of products, compiled once for each of Highway's targets.
#if defined(TANDEM_WINOGRAD_OPERANDS) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_WINOGRAD_OPERANDS
#undef TANDEM_WINOGRAD_OPERANDS
#else
#define TANDEM_WINOGRAD_OPERANDS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "layers/convolution/winograd_matrices.h"
#include "layers/convolution/winograd_products-inl.h"
#include "plugins/cpu/bfloat16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::winograd::HWY_NAMESPACE {

using cpu::bfloat16;

// The first column of a row that is not 0.
template <class Matrix>
constexpr int first_term(int row) {
  int column = 0;
  while (Matrix::at(row, column) == 0) ++column;
  return column;
}

template <class Matrix, int Row, int Column>
HWY_INLINE Vector add_term(Vector sum, const Vector* x) {
  constexpr float factor = Matrix::at(Row, Column);
  constexpr bool is_first = first_term<Matrix>(Row) == Column;
  if constexpr (factor == 0) {
    return sum;
  } else if constexpr (is_first) {
    return factor == 1 ? x[Column] : hn::Mul(hn::Set(D(), factor), x[Column]);
  } else if constexpr (factor == 1) {
    return hn::Add(sum, x[Column]);
  } else if constexpr (factor == -1) {
    return hn::Sub(sum, x[Column]);
  } else {
    return hn::MulAdd(hn::Set(D(), factor), x[Column], sum);
  }
}

template <class Matrix, int Row, int... Column>
HWY_INLINE Vector row_product(const Vector* x, std::integer_sequence<int, Column...>) {
  Vector sum = hn::Zero(D());
  ((sum = add_term<Matrix, Row, Column>(sum, x)), ...);
  return sum;
}

template <class Matrix, int... Row>
HWY_INLINE void multiply_vector(const Vector* x, float* target, int64_t stride,
                                std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Matrix::columns>;
  (hn::StoreU(row_product<Matrix, Row>(x, Columns()), D(), target + Row * stride), ...);
}

template <class T>
HWY_INLINE Vector load_vector(const T* source) {
  return cpu::HWY_NAMESPACE::load(D(), source);
}
template <class T>
HWY_INLINE Vector rounded_vector(Vector vector) {
  return cpu::HWY_NAMESPACE::rounded<T>(D(), vector);
}
// Of values that T holds.
template <class T>
HWY_INLINE void store_vector(Vector vector, T* target) {
  cpu::HWY_NAMESPACE::store_rounded(D(), vector, target);
}

template <class T, int... I>
HWY_INLINE void load(Vector* x, const T* source, int64_t stride, std::integer_sequence<int, I...>) {
  ((x[I] = load_vector(source + I * stride)), ...);
}

// Result row r and column s of M X M^T goes to target + (r * M::rows + s) * stride.
template <class M, class T>
HWY_INLINE void transform(const T* x, int64_t row_stride, int64_t column_stride, float* target,
                          int64_t stride) {
  using Columns = std::make_integer_sequence<int, M::columns>;
  using Rows = std::make_integer_sequence<int, M::rows>;
  HWY_ALIGN float half[M::rows * M::columns * lanes];
  for (int64_t column = 0; column < M::columns; ++column) {
    Vector line[M::columns];
    load(line, x + column * column_stride, row_stride, Columns());
    multiply_vector<M>(line, half + column * lanes, M::columns * lanes, Rows());
  }
  for (int64_t row = 0; row < M::rows; ++row) {
    Vector line[M::columns];
    load(line, half + row * M::columns * lanes, lanes, Columns());
    multiply_vector<M>(line, target + row * M::rows * stride, stride, Rows());
  }
}

// Stores transformed items one after the other: the lanes of an item next to each other.
template <class M, class Element>
class ByChannels {
 public:
  ByChannels(float* target, int64_t value_stride) : target_(target), value_stride_(value_stride) {}
  template <class T>
  HWY_INLINE void add(const T* x, int64_t row_stride, int64_t column_stride) {
    if constexpr (Element::depths_in_word == 1) {
      transform<M>(x, row_stride, column_stride, target_, value_stride_);
    } else {
      HWY_ALIGN float values[M::rows * M::rows * lanes];
      transform<M>(x, row_stride, column_stride, values, lanes);
      for (int64_t i = 0; i < M::rows * M::rows; ++i) {
        hn::StoreU(Element::round(hn::Load(D(), values + i * lanes)), typename Element::Halves(),
                   reinterpret_cast<uint16_t*>(target_ + i * value_stride_));
      }
    }
    target_ += words;
  }
  // Zeros for the rest of `items`, of which `count` were added.
  HWY_INLINE void finish(int64_t count, int64_t items) {
    for (int64_t i = 0; i < M::rows * M::rows; ++i) {
      std::fill_n(target_ + i * value_stride_, (items - count) * words, 0.0F);
    }
  }

 private:
  static constexpr int64_t words = lanes / Element::depths_in_word;  // of an item
  float* target_;
  int64_t value_stride_;
};

// A float32 is a word, so that products by items take the order of those by channels.
template <class M>
using FloatItems = ByChannels<M, Float32>;

#if HWY_TARGET == HWY_AVX3
// Two items at a time: each word has the values of both for a lane.
template <class M>
class ByItems {
 public:
  ByItems(float* target, int64_t value_stride) : target_(target), value_stride_(value_stride) {}
  template <class T>
  HWY_INLINE void add(const T* x, int64_t row_stride, int64_t column_stride) {
    transform<M>(x, row_stride, column_stride, values_[is_second_ ? 1 : 0], lanes);
    if (is_second_) store();
    is_second_ = !is_second_;
  }
  HWY_INLINE void finish(int64_t count, int64_t items) {
    if (is_second_) {
      std::fill_n(values_[1], M::rows * M::rows * lanes, 0.0F);
      store();
    }
    for (int64_t value = 0; value < M::rows * M::rows; ++value) {
      std::fill_n(target_ + value * value_stride_, (items / 2 - (count + 1) / 2) * lanes, 0.0F);
    }
  }

 private:
  HWY_INLINE void store() {
    const hn::RebindToUnsigned<D> bits;
    for (int64_t value = 0; value < M::rows * M::rows; ++value) {
      const auto first = Bfloat16::round(hn::Load(D(), values_[0] + value * lanes));
      const auto second = Bfloat16::round(hn::Load(D(), values_[1] + value * lanes));
      const auto pairs =
          hn::Or(hn::PromoteTo(bits, first), hn::ShiftLeft<16>(hn::PromoteTo(bits, second)));
      hn::StoreU(hn::BitCast(D(), pairs), D(), target_ + value * value_stride_);
    }
    target_ += lanes;
  }
  HWY_ALIGN float values_[2][M::rows * M::rows * lanes];
  float* target_;
  int64_t value_stride_;
  bool is_second_ = false;
};
#endif

}  // namespace tandem::layers::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
