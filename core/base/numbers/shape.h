// Shapes, layouts and dtypes of tensors, with their names for users. A Shape is always the logical
// N,C,H,W, whatever the layout in memory.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/abi.h"

namespace tandem {

using Shape = tandem_shape;

[[nodiscard]] inline int64_t element_count(const Shape& s) {
  return s.n * s.c * s.h * s.w;
}
[[nodiscard]] inline bool equal(const Shape& a, const Shape& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}
// "128x3x227x227"
[[nodiscard]] std::string to_string(const Shape& shape);
// "NCHW", "NHWC", "NCHW8c", "NCHW16c"
[[nodiscard]] std::string layout_name(int32_t layout);

// A precision a user may ask for that is not a dtype: float32 whose products may round their
// factors to TF32 (Layer::allows_tf32). The value differs from every dtype of the ABI.
inline constexpr int32_t tf32_precision = 64;
// Bytes of one element. Error for an unknown dtype.
[[nodiscard]] int64_t dtype_bytes(int32_t dtype);
// "float32"; also accepts tf32_precision.
[[nodiscard]] std::string dtype_name(int32_t dtype);
// From float32, tf32, bfloat16 or float16. Error for another word.
[[nodiscard]] int32_t parse_precision(const std::string& text);

}  // namespace tandem
