// The order in which a sum of squares is made, the same on every GPU: block b of `blocks` takes
// elements b * threads + t, and every blocks * threads further, in its thread t; threads are added
// in a tree (thread t takes t + half), then the blocks' sums in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cuda/workspace.h"

namespace tandem::cuda {

constexpr int sum_threads = 256;
static_assert(most_partial_sums == sum_threads, "one block adds the partial sums");

// Blocks of the first stage: depends on `count` only, never on the GPU.
constexpr int sum_blocks(int64_t count) {
  constexpr int64_t elements_per_thread = 16;
  constexpr int64_t per_block = sum_threads * elements_per_thread;
  return static_cast<int>(
      std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most_partial_sums));
}

}  // namespace tandem::cuda
