#include "core/base/shape.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/precision.h"

namespace tandem {

std::string to_string(const Shape& shape) {
  return fmt::format("{}x{}x{}x{}", shape.n, shape.c, shape.h, shape.w);
}

std::string layout_name(int32_t layout) {
  switch (layout) {
    case TANDEM_NCHW:
      return "NCHW";
    case TANDEM_NHWC:
      return "NHWC";
    case TANDEM_NCHW8C:
      return "NCHW8c";
    case TANDEM_NCHW16C:
      return "NCHW16c";
    default:
      return fmt::format("layout {}", layout);
  }
}

int64_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case TANDEM_FLOAT32:
    case TANDEM_INT32:
      return 4;
    case TANDEM_BFLOAT16:
    case TANDEM_FLOAT16:
      return 2;
    case TANDEM_UINT8:
      return 1;
    default:
      throw error("dtype {} is not known", dtype);
  }
}

std::string dtype_name(int32_t dtype) {
  switch (dtype) {
    case TANDEM_FLOAT32:
      return "float32";
    case TANDEM_BFLOAT16:
      return "bfloat16";
    case TANDEM_FLOAT16:
      return "float16";
    case TANDEM_INT32:
      return "int32";
    case TANDEM_UINT8:
      return "uint8";
    case tf32_precision:
      return "tf32";
    default:
      return fmt::format("dtype {}", dtype);
  }
}

int32_t parse_precision(const std::string& text) {
  for (const int32_t precision : {int32_t{TANDEM_FLOAT32}, tf32_precision, int32_t{TANDEM_BFLOAT16},
                                  int32_t{TANDEM_FLOAT16}}) {
    if (text == dtype_name(precision)) return precision;
  }
  throw error("precision '{}': there are float32, tf32, bfloat16 and float16", text);
}

}  // namespace tandem
