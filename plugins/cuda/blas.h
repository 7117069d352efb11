// Matrix products on a call's stream by cuBLAS, in float32 and row-major order.
#pragma once

#include <cstdint>
#include <limits>

#include "plugins/cuda/libraries.h"

namespace tandem::cuda {

// A row-major matrix, or a part of one whose rows begin `stride` floats apart.
struct Matrix {
  const float* values;
  int64_t stride;
  bool transposed = false;
};

namespace detail {

inline int blas_extent(int64_t extent) {
  if (extent <= std::numeric_limits<int>::max()) return static_cast<int>(extent);
  throw sdk::unsupported("a matrix has an extent of ", extent,
                         ", but cuBLAS takes at most 2147483647");
}

}  // namespace detail

// C = A B + beta C of m x k and k x n; C's rows begin c_stride apart.
inline void multiply(const sdk::Call& call, Matrix a, Matrix b, float* c, int64_t c_stride,
                     int64_t m, int64_t n, int64_t k, float beta) {
  // cuBLAS is column-major: what it sees are the transposes, and C' = B' A'.
  const auto operation = [](const Matrix& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const float alpha = 1;
  check(cublasSgemm(blas_of(call), operation(b), operation(a), detail::blas_extent(n),
                    detail::blas_extent(m), detail::blas_extent(k), &alpha, b.values,
                    detail::blas_extent(b.stride), a.values, detail::blas_extent(a.stride), &beta,
                    c, detail::blas_extent(c_stride)),
        "cublasSgemm");
}

}  // namespace tandem::cuda
