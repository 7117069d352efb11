// The matrices of Winograd's algorithms F(m, r) in one dimension: Input is B^T, Kernel is G, Output
// is A^T (winograd_kernels.h). They are those of Toom and Cook: polynomials of m + r - 1
// coefficients are evaluated at as many points, of which infinity is one, multiplied there, and
// interpolated. With six points, 0, +-5/8, +-3/2 and infinity lose less than half of the accuracy
// that 0, +-1, +-2 and infinity lose. F(1, r) has no points: Input and Kernel are the identity.
#pragma once

namespace tandem::layers::winograd {

template <int Rows, int Columns>
struct Values {
  float value[Rows][Columns];
};

// A matrix as a type, so that products with it are unrolled and its zeros cost nothing.
template <int Rows, int Columns, Values<Rows, Columns> (*Make)()>
struct Matrix {
  static constexpr int rows = Rows, columns = Columns;
  static constexpr Values<Rows, Columns> all = Make();
  static constexpr float at(int row, int column) { return all.value[row][column]; }
};

template <class M>
struct Transpose {
  static constexpr int rows = M::columns, columns = M::rows;
  static constexpr float at(int row, int column) { return M::at(column, row); }
};

struct FourPoints {
  static constexpr int count = 4;
  static constexpr double finite[] = {0, 1, -1};
};
struct SixPoints {
  static constexpr int count = 6;
  static constexpr double finite[] = {0, 0.625, -0.625, 1.5, -1.5};
};

// Row i: the coefficients of the product of (x - p) over all finite points p other than the i-th.
template <class Points>
constexpr Values<Points::count, Points::count> products() {
  Values<Points::count, Points::count> result{};
  for (int row = 0; row < Points::count; ++row) {
    double polynomial[Points::count] = {1};
    int degree = 0;
    for (int i = 0; i + 1 < Points::count; ++i) {
      if (i == row) continue;
      for (int k = ++degree; k >= 0; --k) {
        polynomial[k] = (k > 0 ? polynomial[k - 1] : 0) - Points::finite[i] * polynomial[k];
      }
    }
    for (int k = 0; k < Points::count; ++k) {
      result.value[row][k] = static_cast<float>(polynomial[k]);
    }
  }
  return result;
}

// The powers 0 to Columns - 1 of the points; with `divided`, over the product of the differences
// from the other points.
template <class Points, int Columns>
constexpr Values<Points::count, Columns> powers(bool divided) {
  Values<Points::count, Columns> result{};
  for (int row = 0; row + 1 < Points::count; ++row) {
    double power = 1;
    for (int i = 0; divided && i + 1 < Points::count; ++i) {
      if (i != row) power /= Points::finite[row] - Points::finite[i];
    }
    for (int column = 0; column < Columns; ++column, power *= Points::finite[row]) {
      result.value[row][column] = static_cast<float>(power);
    }
  }
  result.value[Points::count - 1][Columns - 1] = 1;
  return result;
}

template <class Points, int Columns>
constexpr Values<Points::count, Columns> kernel_powers() {
  return powers<Points, Columns>(true);
}
template <class Points, int Columns>
constexpr Values<Points::count, Columns> output_powers() {
  return powers<Points, Columns>(false);
}

template <class Points, int R>
struct Interpolating {
  static constexpr int count = Points::count, outputs = count + 1 - R;
  using Input = Matrix<count, count, products<Points>>;
  using Kernel = Matrix<count, R, kernel_powers<Points, R>>;
  using Output = Transpose<Matrix<count, outputs, output_powers<Points, outputs>>>;
};

constexpr Values<3, 3> identity() {
  return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
}
constexpr Values<1, 3> sum_of_three() {
  return {{{1, 1, 1}}};
}

using F43 = Interpolating<SixPoints, 3>;
using F23 = Interpolating<FourPoints, 3>;
using F25 = Interpolating<SixPoints, 5>;
struct F13 {
  using Input = Matrix<3, 3, identity>;
  using Kernel = Matrix<3, 3, identity>;
  using Output = Matrix<1, 3, sum_of_three>;
};

}  // namespace tandem::layers::winograd
