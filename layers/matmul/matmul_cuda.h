// MatMul on NVIDIA GPUs: cuBLAS, all products of the batch in one call.
#pragma once

#include "layers/matmul/matmul.h"
#include "plugins/cuda/blas.h"
#include "plugins/cuda/elements.h"

namespace tandem::layers {

class MatMulCuda {
 public:
  MatMulCuda(const sdk::Binding& binding, const sdk::Call&)
      : e_(binding.attributes, binding.input(0).shape, binding.input(1).shape),
        dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      multiply(call, matrices(pass.input<T>(0).get(), e_.m, e_.k, e_.transpose_a),
               matrices(pass.input<T>(1).get(), e_.k, e_.n, e_.transpose_b),
               pass.output<T>(0).get(), {e_.m, e_.n, e_.k, e_.count});
    });
  }
  // da = dy b', db = a' dy; of a transposed input the transposes.
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *a = pass.input<T>(0).get(), *b = pass.input<T>(1).get();
      const T* dy = pass.output_gradient<T>(0).get();
      T *da = pass.input_gradient<T>(0).get(), *db = pass.input_gradient<T>(1).get();
      if (da != nullptr && e_.transpose_a) {
        multiply(call, matrices(b, e_.k, e_.n, e_.transpose_b), matrices(dy, e_.n, e_.m, true), da,
                 {e_.k, e_.m, e_.n, e_.count});
      } else if (da != nullptr) {
        multiply(call, matrices(dy, e_.m, e_.n, false), matrices(b, e_.n, e_.k, !e_.transpose_b),
                 da, {e_.m, e_.k, e_.n, e_.count});
      }
      if (db != nullptr && e_.transpose_b) {
        multiply(call, matrices(dy, e_.n, e_.m, true), matrices(a, e_.m, e_.k, e_.transpose_a), db,
                 {e_.n, e_.k, e_.m, e_.count});
      } else if (db != nullptr) {
        multiply(call, matrices(a, e_.k, e_.m, !e_.transpose_a), matrices(dy, e_.m, e_.n, false),
                 db, {e_.k, e_.n, e_.m, e_.count});
      }
    });
  }

 private:
  // `transposed`: in memory they are columns x rows.
  template <class T>
  static cuda::Matrices<T> matrices(const T* values, int64_t rows, int64_t columns,
                                    bool transposed) {
    return {{values, transposed ? rows : columns, transposed}, rows * columns};
  }
  template <class T>
  static void multiply(const sdk::Call& call, const cuda::Matrices<T>& a,
                       const cuda::Matrices<T>& b, T* c, const cuda::BatchExtents& extents) {
    cuda::multiply_batch(call, a, b, cuda::Results<T>{c, extents.n, extents.m * extents.n}, extents,
                         0);
  }

  MatMulExtents e_;
  int32_t dtype_;
};

}  // namespace tandem::layers
