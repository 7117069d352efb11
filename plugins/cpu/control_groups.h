// The limits that control groups (containers, batch systems) put on the memory of this process:
// version 1 and 2.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::cpu {

struct MemoryLimit {
  int64_t limit = 0;  // bytes
  int64_t used = 0;   // bytes that cannot be reclaimed
};
// The tightest limit on the path from this process's group to the root: the one with the least
// remaining memory.
[[nodiscard]] std::optional<MemoryLimit> memory_limit();

}  // namespace tandem::cpu
