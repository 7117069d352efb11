// A tensor of a check or a test: values in plain N,C,H,W order, and their places in each of the
// ABI's layouts and dtypes, written independently of the plugins.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/numbers/shape.h"
#include "plugins/abi.h"

namespace tandem::checker {

struct PlainTensor {
  Shape shape{0, 0, 0, 0};
  std::vector<float> values;
};

// The nearest number of the dtype, ties to even; any other than bfloat16 and float16 has all.
[[nodiscard]] float rounded_to(int32_t dtype, float value);
[[nodiscard]] PlainTensor rounded_to(int32_t dtype, PlainTensor tensor);

void write_in_layout(const PlainTensor& tensor, int32_t layout, void* memory,
                     int32_t dtype = TANDEM_FLOAT32);
[[nodiscard]] PlainTensor read_in_layout(const Shape& shape, int32_t layout, const void* memory,
                                         int32_t dtype = TANDEM_FLOAT32);

// Channels [begin, end) of every row; rows [begin, end).
[[nodiscard]] PlainTensor channels_of(const PlainTensor& tensor, int64_t begin, int64_t end);
[[nodiscard]] PlainTensor first_axis_of(const PlainTensor& tensor, int64_t begin, int64_t end);

// Normally distributed, the same in every run.
[[nodiscard]] PlainTensor random_tensor(const Shape& shape, unsigned seed, float scale = 1);

}  // namespace tandem::checker
