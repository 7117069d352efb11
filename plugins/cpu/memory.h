// Memory of cpu devices: zero-filled and touched when it is given out, so that what was promised is
// there and nothing is killed later.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// At least 64-byte aligned, large blocks on huge pages. Throws Refusal (TANDEM_OUT_OF_MEMORY, with
// the sizes) if this process may not have that much. Large blocks are touched by so many threads.
[[nodiscard]] void* allocate(int64_t bytes, int32_t threads);
void release(void* address);  // null: nothing happens

}  // namespace tandem::cpu
