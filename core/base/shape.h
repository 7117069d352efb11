// Logical N,C,H,W shapes: tandem_shape with the arithmetic the core needs.
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
// Bytes of one element of a TANDEM_ dtype (error: an unknown one); its name, also tf32_precision's.
[[nodiscard]] int64_t dtype_bytes(int32_t dtype);
[[nodiscard]] std::string dtype_name(int32_t dtype);
// What a user asks for: float32, tf32 (tf32_precision), bfloat16 or float16. Error: another word.
[[nodiscard]] int32_t parse_precision(const std::string& text);

}  // namespace tandem
