// The backend's arithmetic on device memory: fill, add, sum of squares, check for finite values.
// The functions only issue kernels; each throws Refusal for invalid arguments. Every run has the
// same bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cuda {

void fill(const tandem_call& call, float* target, float value, int64_t count);
// target += sources[0], then += sources[1], ..., in this order for every element.
void add(const tandem_call& call, float* target, const float* const* sources, uint32_t source_count,
         int64_t count);
// Sets *found_inf to 1 if a value is infinite or NaN; otherwise leaves it unchanged.
void check_finite(const tandem_call& call, const float* values, int64_t count, int32_t* found_inf);
// *sum in float64, in an order that depends only on `count`. For use inside a submitted work.
void sum_of_squares(const tandem_call& call, const float* values, int64_t count, double* sum);

// Keeps the stream busy for this time: the delays of test mode.
void pass_time(cudaStream_t stream, double seconds);

}  // namespace tandem::cuda
