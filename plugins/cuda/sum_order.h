// The order of the additions in a sum of squares, the same on every GPU: block b of `blocks` takes
// elements b * threads + t, and every further blocks * threads, in its thread t. Threads are added
// in a tree (thread t takes t + half), then the sums of the blocks in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cuda/workspace.h"

namespace tandem::cuda {

constexpr int sum_threads = 256;
static_assert(max_partial_sums == sum_threads, "one block adds the partial sums");

// The number of blocks of the first stage depends only on `count`, never on the GPU.
constexpr int sum_blocks(int64_t count) {
  constexpr int64_t elements_per_thread = 16;
  constexpr int64_t per_block = sum_threads * elements_per_thread;
  return static_cast<int>(
      std::clamp<int64_t>((count + per_block - 1) / per_block, 1, max_partial_sums));
}

}  // namespace tandem::cuda
