// The limits that control groups (containers, batch systems) put on this process: version 1 and 2.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::cpu {

struct MemoryLimit {
  int64_t limit = 0;  // bytes
  int64_t used = 0;   // bytes that cannot be reclaimed
};
// The tightest along the path from this process's group to the root: the one with least left.
[[nodiscard]] std::optional<MemoryLimit> memory_limit();
// Cores' worth of time; the smallest along the path.
[[nodiscard]] std::optional<double> core_quota();

}  // namespace tandem::cpu
