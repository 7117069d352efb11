// This computer's cores, processor and memory, as the kernel and the control groups report them.
// Nothing here fails; a value that cannot be read is 0 or "unknown".
#pragma once

#include <cstdint>
#include <string>

#include "plugins/abi.h"

namespace tandem::cpu {

// The cores that this process may use: its affinity, limited by the control groups' quota; at least
// 1.
[[nodiscard]] int32_t core_count();
// Bytes that this process may use in all, and now, without being killed or swapped.
struct MemoryState {
  int64_t total = 0;
  int64_t available = 0;
};
[[nodiscard]] MemoryState memory_state();

// `threads` cores of this computer as a device. Speeds are estimates from instruction set and
// clock.
[[nodiscard]] tandem_device_info describe(int32_t threads);

}  // namespace tandem::cpu
