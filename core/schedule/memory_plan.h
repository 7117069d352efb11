// Where every buffer of a plan lies in its device's arenas, before anything is allocated: the
// forecast of what a run needs. Buffers that only one stream uses share memory when their uses do
// not overlap in its order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/plan.h"

namespace tandem {

struct Place {
  int64_t offset = 0;  // in its device's persistent or transient arena; multiples of 64
};

struct MemoryPlan {
  std::vector<Place> places;              // one a buffer; external buffers have none
  std::vector<int64_t> persistent_bytes;  // one a device
  std::vector<int64_t> transient_bytes;
  std::vector<int64_t> host_bytes{0};  // pinned, device -1 (one entry)
};

// `reuse` false gives every buffer its own bytes.
[[nodiscard]] MemoryPlan plan_memory(const Plan& plan, bool reuse = true);

}  // namespace tandem
