// The backend's own arithmetic on device memory: fill, add, sums of squares, the check for finite
// values. It only issues; each throws Refusal on arguments it cannot use. Same bits on every run.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cuda {

void fill(const tandem_call& call, float* target, float value, int64_t count);
// target += sources[0], then += sources[1], ...: in that order for every element.
void add(const tandem_call& call, float* target, const float* const* sources, uint32_t source_count,
         int64_t count);
// *found_inf = 1 if a value is infinite or not a number, else as it was.
void check_finite(const tandem_call& call, const float* values, int64_t count, int32_t* found_inf);
// *sum in float64, in an order that depends on `count` only. Inside a submitted work.
void sum_of_squares(const tandem_call& call, const float* values, int64_t count, double* sum);

// Keeps the stream busy that long, doing nothing: the test mode's delays.
void pass_time(cudaStream_t stream, double seconds);

}  // namespace tandem::cuda
