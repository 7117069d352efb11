// The backend's own arithmetic on float32 memory: fill, add, sums of squares, the check for
// finite values. Bit-identical for any number of threads and any vector width. Each throws Refusal
// on arguments it cannot use.
#pragma once

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cpu {

void fill(int32_t threads, float* target, float value, int64_t count);
// target += sources[0], then += sources[1], ...: in that order for every element.
void add(int32_t threads, float* target, const float* const* sources, uint32_t source_count,
         int64_t count);
// *found_inf = 1 if a value is infinite or not a number, else as it was.
void check_finite(int32_t threads, const float* values, int64_t count, int32_t* found_inf);
// In float64.
[[nodiscard]] double sum_of_squares(int32_t threads, const float* values, int64_t count);

}  // namespace tandem::cpu
