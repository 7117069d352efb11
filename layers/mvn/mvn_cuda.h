// MVN on NVIDIA GPUs: a team for each group of values. Every thread reads only what it wrote
// itself.
#pragma once

#include <cmath>

#include "layers/common/groups_cuda.h"
#include "layers/mvn/mvn.h"

namespace tandem::layers {

// Saves a group's factor 1 / (deviation + eps), and (deviation + eps) / deviation.
struct MvnForward {
  // Makes the result of a constant group zero if eps is 0.
  static constexpr double smallest = 1e-30;

  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    const int64_t first = index.first(group);
    const float mean = mean_of(team, x + first, index.reduced, index.inner);
    float factor = 1;
    if (saved != nullptr) factor = factor_of(team, group, first, mean);
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      y[i] = (x[i] - mean) * factor;
    }
  }

  template <class Team>
  TANDEM_HOST_DEVICE float factor_of(const Team& team, int64_t group, int64_t first,
                                     float mean) const {
    const double squares = squared_deviations(team, x + first, index.reduced, index.inner, mean);
    const double deviation = sqrt(squares / static_cast<double>(index.reduced));
    const double divisor = deviation + eps > smallest ? deviation + eps : smallest;
    const auto factor = static_cast<float>(1 / divisor);
    if (team.rank() == 0) {
      saved[2 * group] = factor;
      saved[2 * group + 1] =
          deviation > 0 ? static_cast<float>((deviation + eps) / deviation) : 0.0F;
    }
    return factor;
  }

  GroupIndex index;
  double eps;
  const float* x;
  float *y, *saved;  // saved: nullptr without normalize_variance
};

// See mvn_cpu.cpp for the formula.
struct MvnBackward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    const int64_t first = index.first(group);
    const auto count = static_cast<double>(index.reduced);
    double sum = 0, products = 0;
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      sum += static_cast<double>(g[i]);
      if (saved != nullptr) products += static_cast<double>(g[i] * y[i]);
    }
    const auto mean = static_cast<float>(team.sum(sum) / count);
    float projection = 0, factor = 1;
    if (saved != nullptr) {
      projection = static_cast<float>(team.sum(products) / count) * saved[2 * group + 1];
      factor = saved[2 * group];
    }
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      dx[i] = saved == nullptr ? g[i] - mean : (g[i] - mean - y[i] * projection) * factor;
    }
  }
  GroupIndex index;
  const float *y, *g, *saved;
  float* dx;
};

class MvnCuda : public sdk::Needs {
 public:
  MvnCuda(const sdk::Binding& binding, const sdk::Call&)
      : groups_(
            groups_from(binding.input(0), binding.attributes.boolean("across_channels") ? 1 : 2)),
        normalises_(binding.attributes.boolean("normalize_variance")),
        eps_(binding.attributes.number("eps")) {
    if (normalises_) saved_bytes = 2 * groups_.count() * static_cast<int64_t>(sizeof(float));
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams_for(groups_),
                    MvnForward{GroupIndex(groups_), eps_, pass.input(0).get(), pass.output(0).get(),
                               normalises_ ? pass.saved().get() : nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(
        call, teams_for(groups_),
        MvnBackward{GroupIndex(groups_), pass.output(0).get(), pass.output_gradient(0).get(),
                    normalises_ ? pass.saved().get() : nullptr, pass.input_gradient(0).get()});
  }

 private:
  Groups groups_;
  bool normalises_;
  double eps_;
};

}  // namespace tandem::layers
