// Memory of cpu devices. It is zero-filled and touched when it is allocated, so that it is really
// there and the process is not killed later.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// At least 64-byte aligned; large blocks are on huge pages and are touched by `threads` threads.
// Throws Refusal (TANDEM_OUT_OF_MEMORY, with the sizes) if this process may not have that much
// memory.
[[nodiscard]] void* allocate(int64_t bytes, int32_t threads);
void release(void* address);  // null: nothing happens

}  // namespace tandem::cpu
