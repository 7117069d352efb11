// Kernels on a GPU with a fused ReLU (tandem_binding.fused_activation). The ReLU is applied to the
// value after its rounding, so that the bits are those of a separate ReLU layer. Whether it is
// applied is decided at run time, so that the other arithmetic is the same code in both cases.
#pragma once

#include <cstdint>

#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

using sdk::relu_only;

template <class T>
TANDEM_HOST_DEVICE inline void store_with_relu(float value, T& target, bool fuses_relu) {
  T stored;
  cuda::store(value, stored);
  target = fuses_relu && cuda::load(stored) < 0 ? T{} : stored;  // NaN < 0 is false
}

// A ReLU of the first `columns` columns of a matrix whose rows lie `stride` elements apart.
template <class T>
struct ReluOfRows {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, columns);
    T& target = y[row * stride + (i - row * columns)];
    store_with_relu(cuda::load(target), target, true);
  }
  cuda::Divisor columns;
  int64_t stride;
  T* y;
};

}  // namespace tandem::layers
