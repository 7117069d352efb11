// Where every buffer of a plan lies in its device's arenas, and how large these are: known before
// anything is allocated. Buffers that only one stream uses share memory where their uses do not
// overlap in its order. A buffer that no task touches takes no memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

constexpr int64_t memory_alignment = 64;
[[nodiscard]] constexpr int64_t aligned(int64_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}
// Bytes from the begin of one slot of a buffer to the begin of the next.
[[nodiscard]] constexpr int64_t slot_stride(const Buffer& buffer) {
  return aligned(buffer.bytes);
}
// Bytes of all its slots.
[[nodiscard]] constexpr int64_t total_bytes(const Buffer& buffer) {
  return slot_stride(buffer) * buffer.slots;
}

struct MemoryPlan {
  // Of each buffer in its arena (its device's persistent, transient or extended one, or the
  // host's), in multiples of 64; external buffers have none.
  std::vector<int64_t> offsets;
  std::vector<int64_t> persistent_bytes;  // one per device
  std::vector<int64_t> transient_bytes;
  std::vector<int64_t> extended_bytes;  // of a device's extended memory
  std::vector<int64_t> host_bytes{0};   // pinned, device -1 (one entry)
  int64_t prefetched_bytes = 0;         // pinned, of the loader's ring that feeds the plan
};

// `reuse` false gives every buffer its own bytes.
[[nodiscard]] MemoryPlan plan_memory(const Plan& plan, bool reuse = true);

}  // namespace tandem
