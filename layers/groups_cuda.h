// The index arithmetic of Groups (groups.h) in device code.
#pragma once

#include <cstdint>

#include "layers/groups.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct GroupIndex {
  explicit GroupIndex(const Groups& groups) : reduced(groups.reduced), inner(groups.inner) {}

  // The first element of a group; its elements lie `inner` apart.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t first(int64_t group) const {
    const int64_t outer = cuda::quotient(group, inner);
    return outer * reduced * inner + (group - outer * inner);
  }

  cuda::Divisor reduced, inner;
};

inline cuda::Teams teams_for(const Groups& groups) {
  return {groups.count(), groups.reduced, groups.inner > 1};
}

}  // namespace tandem::layers
