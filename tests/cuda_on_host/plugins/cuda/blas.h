// plugins/cuda/blas.h for a machine without a GPU.
#pragma once

#include "plugins/cuda/teams.h"

namespace tandem::cuda {

struct Matrix {
  const float* values;
  int64_t stride;
  bool transposed = false;
};

// What the real header says of it.
inline void multiply(const sdk::Call& call, Matrix a, Matrix b, float* c, int64_t c_stride,
                     int64_t m, int64_t n, int64_t k, float beta) {
  const DeviceWork work(call);
  const auto element = [](const Matrix& x, int64_t row, int64_t column) {
    return static_cast<double>(
        x.values[x.transposed ? column * x.stride + row : row * x.stride + column]);
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += element(a, i, l) * element(b, l, j);
      float& target = c[i * c_stride + j];
      target = static_cast<float>(sum) + (beta == 0 ? 0.0F : beta * target);
    }
  }
}

}  // namespace tandem::cuda
