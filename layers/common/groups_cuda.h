// The index arithmetic of Groups (groups.h) in device code.
#pragma once

#include <cstdint>

#include "layers/common/groups.h"
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

// For a team: the mean of `count` values that lie `stride` apart, and the sum of their squared
// deviations from it.
template <class Team>
TANDEM_HOST_DEVICE float mean_of(const Team& team, const float* x, int64_t count, int64_t stride) {
  double sum = 0;
  for (int64_t i = team.rank(); i < count; i += team.size()) {
    sum += static_cast<double>(x[i * stride]);
  }
  return static_cast<float>(team.sum(sum) / static_cast<double>(count));
}
template <class Team>
TANDEM_HOST_DEVICE double squared_deviations(const Team& team, const float* x, int64_t count,
                                             int64_t stride, float mean) {
  double squares = 0;
  for (int64_t i = team.rank(); i < count; i += team.size()) {
    const float distance = x[i * stride] - mean;
    squares += static_cast<double>(distance * distance);
  }
  return team.sum(squares);
}

inline cuda::Teams teams_for(const Groups& groups) {
  return {groups.count(), groups.reduced, groups.inner > 1};
}

}  // namespace tandem::layers
