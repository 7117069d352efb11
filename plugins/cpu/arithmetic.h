// The backend's arithmetic on float32 memory: fill, add, sum of squares, check for finite values.
// The bits are the same for any number of threads and any vector width. Each function throws
// Refusal for invalid arguments.
#pragma once

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cpu {

void fill(int32_t threads, float* target, float value, int64_t count);
// target += sources[0], then += sources[1], ..., in this order for every element.
void add(int32_t threads, float* target, const float* const* sources, uint32_t source_count,
         int64_t count);
// Sets *found_inf to 1 if a value is infinite or NaN; otherwise leaves it unchanged.
void check_finite(int32_t threads, const float* values, int64_t count, int32_t* found_inf);
// In float64.
[[nodiscard]] double sum_of_squares(int32_t threads, const float* values, int64_t count);

}  // namespace tandem::cpu
