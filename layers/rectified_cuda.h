// Kernels on a gpu that do a ReLU along (tandem_binding.activation). What is stored is rectified
// after it has been rounded, so that the bits are those of a ReLU layer behind it. Whether it is, a
// kernel is told as it runs: its arithmetic is the same code either way.
#pragma once

#include <cstdint>

#include "plugins/cuda/elements.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

using sdk::rectifies;
using sdk::rectifying;

template <class T>
TANDEM_HOST_DEVICE inline void store_rectified(float value, T& place, bool rectifies) {
  T stored;
  cuda::store(value, stored);
  place = rectifies && cuda::load(stored) < 0 ? T{} : stored;  // a NaN is not below zero
}

// Columns of some rows of a matrix, all of them where stride is their number.
template <class T>
struct RectifiedRows {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, columns);
    T& place = y[row * stride + (i - row * columns)];
    store_rectified(cuda::load(place), place, true);
  }
  cuda::Divisor columns;
  int64_t stride;
  T* y;
};

}  // namespace tandem::layers
