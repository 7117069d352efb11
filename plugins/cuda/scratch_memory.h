// The alignment of parts of scratch memory: that of memory that CUDA allocates, which cuDNN and
// cuBLASLt count on. The scratch memory of a pass begins at a smaller one (plugins/abi/layers.h),
// so who needs this asks for scratch_alignment bytes more.
#pragma once

#include <cstdint>

namespace tandem::cuda {

constexpr int64_t scratch_alignment = 256;

// The size of a part, so that what follows it is aligned like it.
constexpr int64_t scratch_part(int64_t bytes) {
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

// The first aligned address from `memory` on.
inline void* aligned_scratch(void* memory) {
  return reinterpret_cast<void*>(scratch_part(reinterpret_cast<intptr_t>(memory)));
}

}  // namespace tandem::cuda
