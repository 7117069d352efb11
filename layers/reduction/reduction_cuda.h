// Reduction on NVIDIA GPUs: a team for each sum.
#pragma once

#include "layers/common/groups_cuda.h"
#include "layers/reduction/reduction.h"

namespace tandem::layers {

enum class ReductionOf { values, sizes, squares };

struct ReductionForward {
  [[nodiscard]] TANDEM_HOST_DEVICE double term(float v) const {
    if (what == ReductionOf::sizes) return static_cast<double>(v < 0 ? -v : v);
    return static_cast<double>(what == ReductionOf::squares ? v * v : v);
  }
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    const int64_t first = index.first(group);
    double sum = 0;
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      sum += term(x[first + r * index.inner]);
    }
    sum = team.sum(sum);
    if (team.rank() == 0) y[group] = static_cast<float>(factor * sum);
  }
  GroupIndex index;
  ReductionOf what;
  double factor;
  const float* x;
  float* y;
};

struct ReductionBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t line = cuda::quotient(i, index.inner);
    const int64_t group =
        cuda::quotient(line, index.reduced) * index.inner + (i - line * index.inner);
    float slope = 1;
    if (what == ReductionOf::sizes) slope = x[i] > 0 ? 1.0F : x[i] < 0 ? -1.0F : 0.0F;
    if (what == ReductionOf::squares) slope = 2 * x[i];
    dx[i] = factor * dy[group] * slope;
  }
  GroupIndex index;
  ReductionOf what;
  float factor;
  const float *x, *dy;
  float* dx;
};

class ReductionCuda {
 public:
  ReductionCuda(const sdk::Binding& binding, const sdk::Call&)
      : groups_(groups_from(binding.input(0), sample_axis(binding.attributes.integer("axis"),
                                                          binding.input(0).shape))),
        factor_(binding.attributes.number("coeff")) {
    const std::string_view operation = binding.attributes.text("operation");
    if (operation == "MEAN") factor_ /= static_cast<double>(groups_.reduced);
    if (operation == "ASUM") what_ = ReductionOf::sizes;
    if (operation == "SUMSQ") what_ = ReductionOf::squares;
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams_for(groups_),
                    ReductionForward{GroupIndex(groups_), what_, factor_, pass.input(0).get(),
                                     pass.output(0).get()});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, groups_.count() * groups_.reduced,
                   ReductionBackward{GroupIndex(groups_), what_, static_cast<float>(factor_),
                                     pass.input(0).get(), pass.output_gradient(0).get(),
                                     pass.input_gradient(0).get()});
  }

 private:
  Groups groups_;
  double factor_;
  ReductionOf what_ = ReductionOf::values;
};

}  // namespace tandem::layers
