// The number of blocks with which a kernel over `count` elements is launched, and the elements of
// each thread: grid-stride loops, so that any count works with any grid.
//   __global__ void twice(float* x, int64_t count) {
//     for (int64_t i = first_element(); i < count; i += element_stride()) x[i] *= 2;
//   }
//   if (count > 0) twice<<<blocks_for(count), threads_per_block, 0, stream>>>(x, count);
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::cuda {

constexpr unsigned threads_per_block = 256;
// More than any GPU runs at once; more blocks would only cost their start.
constexpr int64_t max_blocks = 4096;

// At least 1: a launch of no blocks is an error, so callers skip empty launches.
constexpr unsigned blocks_for(int64_t count, int64_t elements_per_thread = 1) {
  const int64_t per_block = static_cast<int64_t>(threads_per_block) * elements_per_thread;
  return static_cast<unsigned>(
      std::clamp<int64_t>((count + per_block - 1) / per_block, 1, max_blocks));
}

// The same for kernels that read far ahead in each thread: their blocks end soon, and the next ones
// begin to read while others still write.
constexpr unsigned blocks_of_vectors(int64_t count, int64_t elements_per_thread) {
  constexpr int64_t most = 1 << 17;
  const int64_t per_block = static_cast<int64_t>(threads_per_block) * elements_per_thread;
  return static_cast<unsigned>(std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most));
}

#ifdef __CUDACC__
__device__ inline int64_t first_element() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t element_stride() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}
#endif

}  // namespace tandem::cuda
