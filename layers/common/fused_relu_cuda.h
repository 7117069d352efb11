// Kernels on a GPU with a fused ReLU (tandem_binding.fused_activation). The ReLU is applied to the
// value after its rounding, so that the bits are those of a separate ReLU layer. Whether it is
// applied is decided at run time, so that the other arithmetic is the same code in both cases.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

using sdk::relu_only;

// The largest number that is rounded to zero as a T: half of the smallest number of 16 bits.
template <class T>
inline constexpr float rounded_to_zero = std::is_same_v<T, cuda::bfloat16>  ? 0x1p-134F
                                         : std::is_same_v<T, cuda::float16> ? 0x1p-25F
                                                                            : 0.0F;

template <class T>
TANDEM_HOST_DEVICE inline void store_with_relu(float value, T& target, bool fuses_relu) {
  const float least = fuses_relu ? -rounded_to_zero<T> : -INFINITY;
  cuda::store(value < least ? 0.0F : value, target);  // NaN is not
}

template <class T, int n>
TANDEM_HOST_DEVICE inline void write_with_relu(const cuda::Values<n>& values, T* target,
                                               bool fuses_relu) {
  cuda::Elements<T, n> stored;
  TANDEM_UNROLL
  for (int lane = 0; lane < n; ++lane) {
    store_with_relu(values[lane], stored.element[lane], fuses_relu);
  }
  cuda::write(stored, target);
}

// Whether the ReLU of a value is above zero after its rounding to T.
template <class T>
TANDEM_HOST_DEVICE inline bool is_above_zero(float value) {
  return value > rounded_to_zero<T>;
}

// A ReLU of the first `columns` columns of a matrix whose rows lie `stride` elements apart.
template <class T>
struct ReluOfRows {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(y) &&
           (columns == stride || (columns % at_once == 0 && stride % at_once == 0));
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(y + place(i));
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<T, n>& v) const {
    write_with_relu(cuda::each_lane<n>([&](int lane) { return v[lane]; }), y + place(i), true);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t place(int64_t i) const {
    if (columns == stride) return i;
    const int64_t row = cuda::quotient(i, columns);
    return row * stride + (i - row * columns);
  }
  cuda::Divisor columns;
  int64_t stride;
  T* y;
};

}  // namespace tandem::layers
