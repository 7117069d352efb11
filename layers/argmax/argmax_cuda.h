// ArgMax on NVIDIA GPUs: a team for each run finds the largest values one after the other.
#pragma once

#include "layers/argmax/argmax_geometry.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// An element in the order of ArgMax: larger values first; of equal ones the larger index first; NaN
// last, the smaller index first.
struct RankedValue {
  float value;   // -infinity for NaN
  int64_t rank;  // ranked_index()
  bool valid;

  [[nodiscard]] TANDEM_HOST_DEVICE bool before(const RankedValue& other) const {
    return value > other.value || (value == other.value && rank > other.rank);
  }
};
struct FirstRanked {
  TANDEM_HOST_DEVICE RankedValue operator()(const RankedValue& a, const RankedValue& b) const {
    if (!a.valid || !b.valid) return a.valid ? a : b;
    return b.before(a) ? b : a;
  }
};

struct ArgMaxForward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t run) const {
    const int64_t outer = cuda::quotient(run, inner), column = run - outer * inner;
    const float* values = x + outer * geometry.extent * inner + column;
    RankedValue last{0, 0, false};
    for (int64_t k = 0; k < geometry.top_k; ++k) {
      RankedValue best{0, 0, false};
      for (int64_t i = team.rank(); i < geometry.extent; i += team.size()) {
        const float value = values[i * inner];
        const RankedValue here{value == value ? value : -INFINITY, ranked_index(value, i), true};
        if (!last.valid || last.before(here)) best = FirstRanked()(best, here);
      }
      last = team.combine(best, FirstRanked());
      if (team.rank() == 0) geometry.write(y, outer, column, k, last.rank, values);
    }
  }
  ArgMaxGeometry geometry;
  cuda::Divisor inner;
  const float* x;
  float* y;
};

class ArgMaxCuda {
 public:
  ArgMaxCuda(const sdk::Binding& binding, const sdk::Call&) : geometry_(binding) {}

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const ArgMaxGeometry& g = geometry_;
    cuda::for_teams(call, {g.outer * g.inner, g.extent, g.inner > 1},
                    ArgMaxForward{g, g.inner, pass.input(0).get(), pass.output(0).get()});
  }

 private:
  ArgMaxGeometry geometry_;
};

}  // namespace tandem::layers
