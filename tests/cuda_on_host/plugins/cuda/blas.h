// plugins/cuda/blas.h for a machine without a GPU.
#pragma once

#include "plugins/cuda/elements.h"
#include "plugins/cuda/rounded_to_tf32.h"
#include "plugins/cuda/teams.h"

namespace tandem::cuda {

template <class T>
struct Matrix {
  const T* values;
  int64_t stride;
  bool transposed = false;
};

inline void require_computable(int32_t, bool) {}

// As in the real header. With allows_tf32 factors are always rounded, so that tests see it.
template <class T, class C>
void multiply(const sdk::Call& call, const Matrix<T>& a, const Matrix<T>& b, C* c, int64_t c_stride,
              int64_t m, int64_t n, int64_t k, float beta, bool allows_tf32 = false) {
  const DeviceWork work(call);
  const auto element = [&](const Matrix<T>& x, int64_t row, int64_t column) {
    const int64_t place = x.transposed ? column * x.stride + row : row * x.stride + column;
    return static_cast<double>(rounded_to_tf32(load(x.values[place]), allows_tf32));
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += element(a, i, l) * element(b, l, j);
      C& target = c[i * c_stride + j];
      store(static_cast<float>(sum) + (beta == 0 ? 0.0F : beta * load(target)), target);
    }
  }
}

template <class T>
struct Matrices {
  Matrix<T> first;
  int64_t step;
};
template <class T>
struct Results {
  T* values;
  int64_t stride, step;
};
struct BatchExtents {
  int64_t m, n, k, count;
};

template <class T>
void multiply_batch(const sdk::Call& call, const Matrices<T>& a, const Matrices<T>& b,
                    const Results<T>& c, const BatchExtents& extents, float beta) {
  const auto matrix = [](const Matrices<T>& all, int64_t i) {
    return Matrix<T>{all.first.values + i * all.step, all.first.stride, all.first.transposed};
  };
  for (int64_t i = 0; i < extents.count; ++i) {
    multiply(call, matrix(a, i), matrix(b, i), c.values + i * c.step, c.stride, extents.m,
             extents.n, extents.k, beta);
  }
}

}  // namespace tandem::cuda
