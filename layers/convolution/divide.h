// Quotients of whole numbers that are rounded to a whole number.
#pragma once

#include <cstdint>

namespace tandem::layers {

// Rounded up. `count` from 0, `by` from 1.
[[nodiscard]] constexpr int64_t divide_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

}  // namespace tandem::layers
