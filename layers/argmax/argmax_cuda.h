// ArgMax on NVIDIA GPUs: a team for each run finds the largest values one after the other.
#pragma once

#include "layers/argmax/argmax.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// An element in the order of ArgMax: larger values first; of equal ones the larger index first; NaN
// last, the smaller index first.
struct RankedValue {
  float value;   // -infinity for NaN
  int64_t rank;  // the index, or -1 - index for NaN
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
    const float* values = x + outer * extent * inner + column;
    RankedValue last{0, 0, false};
    for (int64_t k = 0; k < top_k; ++k) {
      RankedValue best{0, 0, false};
      for (int64_t i = team.rank(); i < extent; i += team.size()) {
        const RankedValue here = ranked(values[i * inner], i);
        if (!last.valid || last.before(here)) best = FirstRanked()(best, here);
      }
      last = team.combine(best, FirstRanked());
      if (team.rank() == 0) write(run, outer, column, k, last.rank, values);
    }
  }
  [[nodiscard]] TANDEM_HOST_DEVICE static RankedValue ranked(float value, int64_t i) {
    const bool number = value == value;
    return {number ? value : -INFINITY, number ? i : -1 - i, true};
  }
  TANDEM_HOST_DEVICE void write(int64_t run, int64_t outer, int64_t column, int64_t k, int64_t rank,
                                const float* values) const {
    const int64_t index = rank < 0 ? -1 - rank : rank;
    const auto position = static_cast<float>(index);
    const float value = values[index * inner];
    if (along_axis) {
      y[(outer * top_k + k) * inner + column] = wants_values ? value : position;
    } else if (wants_values) {
      y[2 * run * top_k + k] = position;
      y[(2 * run + 1) * top_k + k] = value;
    } else {
      y[run * top_k + k] = position;
    }
  }
  bool along_axis, wants_values;
  int64_t top_k, extent;
  cuda::Divisor inner;
  const float* x;
  float* y;
};

class ArgMaxCuda {
 public:
  ArgMaxCuda(const sdk::Binding& binding, const sdk::Call&)
      : axis_(binding.attributes.is_set("axis")),
        values_(binding.attributes.boolean("out_max_val")),
        top_k_(binding.attributes.integer("top_k")) {
    const Extents e = extents_of(binding.input(0).shape);
    const size_t axis =
        axis_ ? sample_axis(binding.attributes.integer("axis"), binding.input(0).shape) : 1;
    for (size_t i = 0; i < axis; ++i) outer_ *= e[i];
    for (size_t i = axis; i < e.size(); ++i) (axis_ && i > axis ? inner_ : extent_) *= e[i];
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::for_teams(
        call, {outer_ * inner_, extent_, inner_ > 1},
        ArgMaxForward{axis_, values_, top_k_, extent_, inner_, pass.input(0), pass.output(0)});
  }

 private:
  bool axis_, values_;
  int64_t top_k_, outer_ = 1, extent_ = 1, inner_ = 1;
};

}  // namespace tandem::layers
