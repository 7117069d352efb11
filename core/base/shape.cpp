#include "core/base/shape.h"

#include <fmt/format.h>

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

}  // namespace tandem
