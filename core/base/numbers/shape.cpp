#include "core/base/numbers/shape.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/error.h"

namespace tandem {
namespace {

struct Dtype {
  int32_t dtype;
  const char* name;
  int64_t bytes;  // 0: no tensor has it
};
constexpr std::array dtypes{
    Dtype{TANDEM_FLOAT32, "float32", 4}, Dtype{TANDEM_BFLOAT16, "bfloat16", 2},
    Dtype{TANDEM_FLOAT16, "float16", 2}, Dtype{TANDEM_INT32, "int32", 4},
    Dtype{TANDEM_UINT8, "uint8", 1},     Dtype{tf32_precision, "tf32", 0},
};

}  // namespace

std::string to_string(const Shape& shape) {
  return fmt::format("{}x{}x{}x{}", shape.n, shape.c, shape.h, shape.w);
}

std::string layout_name(int32_t layout) {
  for (const auto& [known, name] : {std::pair{TANDEM_NCHW, "NCHW"},
                                    {TANDEM_NHWC, "NHWC"},
                                    {TANDEM_NCHW8C, "NCHW8c"},
                                    {TANDEM_NCHW16C, "NCHW16c"}}) {
    if (layout == known) return name;
  }
  return fmt::format("layout {}", layout);
}

int64_t dtype_bytes(int32_t dtype) {
  for (const Dtype& known : dtypes) {
    if (dtype == known.dtype && known.bytes > 0) return known.bytes;
  }
  throw error("dtype {} is not known", dtype);
}

std::string dtype_name(int32_t dtype) {
  for (const Dtype& known : dtypes) {
    if (dtype == known.dtype) return known.name;
  }
  return fmt::format("dtype {}", dtype);
}

int32_t parse_precision(const std::string& text) {
  for (const int32_t precision : {int32_t{TANDEM_FLOAT32}, tf32_precision, int32_t{TANDEM_BFLOAT16},
                                  int32_t{TANDEM_FLOAT16}}) {
    if (text == dtype_name(precision)) return precision;
  }
  throw error("precision '{}': there are float32, tf32, bfloat16 and float16", text);
}

}  // namespace tandem
