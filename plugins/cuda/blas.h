// Matrix products on a call's stream by cuBLAS, in row-major order. Sums are float32.
#pragma once

#include <cstdint>
#include <limits>

#include "plugins/cuda/elements.h"
#include "plugins/cuda/libraries.h"

namespace tandem::cuda {

// A row-major matrix, or columns of one whose rows lie `stride` elements apart.
template <class T>
struct Matrix {
  const T* values;
  int64_t stride;
  bool transposed = false;
};

namespace detail {

inline int blas_extent(int64_t extent) {
  if (extent <= std::numeric_limits<int>::max()) return static_cast<int>(extent);
  throw sdk::unsupported("a matrix has an extent of ", extent,
                         ", but cuBLAS supports at most 2147483647");
}

inline cudaDataType_t blas_type(float) {
  return CUDA_R_32F;
}
inline cudaDataType_t blas_type(bfloat16) {
  return CUDA_R_16BF;
}
inline cudaDataType_t blas_type(float16) {
  return CUDA_R_16F;
}

}  // namespace detail

// C = A B + beta C for m x k and k x n matrices; the rows of C lie c_stride apart. C has the type
// of A, or float. allows_tf32: products of float may round their factors.
template <class T, class C>
void multiply(const sdk::Call& call, const Matrix<T>& a, const Matrix<T>& b, C* c, int64_t c_stride,
              int64_t m, int64_t n, int64_t k, float beta, bool allows_tf32 = false) {
  // cuBLAS is column-major: it sees the transposes, and C' = B' A'.
  const auto operation = [](const auto& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const float alpha = 1;
  check(cublasGemmEx(blas_of(call), operation(b), operation(a), detail::blas_extent(n),
                     detail::blas_extent(m), detail::blas_extent(k), &alpha, b.values,
                     detail::blas_type(T{}), detail::blas_extent(b.stride), a.values,
                     detail::blas_type(T{}), detail::blas_extent(a.stride), &beta, c,
                     detail::blas_type(C{}), detail::blas_extent(c_stride),
                     allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

// Many products of the same size. The values of each matrix begin `step` elements after those of
// the one before; 0: all products have the same one.
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

// The same for `count` products, in one call.
template <class T>
void multiply_batch(const sdk::Call& call, const Matrices<T>& a, const Matrices<T>& b,
                    const Results<T>& c, const BatchExtents& extents, float beta) {
  // Column-major, as in multiply().
  const auto operation = [](const auto& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto extent = [](int64_t value) { return detail::blas_extent(value); };
  const float alpha = 1;
  check(cublasGemmStridedBatchedEx(blas_of(call), operation(b.first), operation(a.first),
                                   extent(extents.n), extent(extents.m), extent(extents.k), &alpha,
                                   b.first.values, detail::blas_type(T{}), extent(b.first.stride),
                                   b.step, a.first.values, detail::blas_type(T{}),
                                   extent(a.first.stride), a.step, &beta, c.values,
                                   detail::blas_type(T{}), extent(c.stride), c.step,
                                   extent(extents.count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace tandem::cuda
