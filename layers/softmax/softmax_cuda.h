// Softmax on NVIDIA GPUs: a team for each pixel's channels.
#pragma once

#include <cmath>

#include "layers/common/groups_cuda.h"
#include "layers/softmax/softmax.h"

namespace tandem::layers {

// The maximum and sum that the softmax of a group of scores needs.
struct ScoresOfGroup {
  float highest;
  double sum;  // of exp(score - highest)
};
template <class Team>
TANDEM_HOST_DEVICE ScoresOfGroup scores_of_group(const Team& team, const float* scores,
                                                 int64_t count, int64_t stride) {
  float highest = scores[0];
  for (int64_t r = team.rank(); r < count; r += team.size()) {
    const float score = scores[r * stride];
    highest = score > highest ? score : highest;
  }
  highest = team.highest(highest);
  double sum = 0;
  for (int64_t r = team.rank(); r < count; r += team.size()) {
    sum += static_cast<double>(expf(scores[r * stride] - highest));
  }
  return {highest, team.sum(sum)};
}

struct SoftmaxForward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    const int64_t first = index.first(group);
    const ScoresOfGroup scores = scores_of_group(team, x + first, index.reduced, index.inner);
    const auto factor = static_cast<float>(1 / scores.sum);
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      y[i] = expf(x[i] - scores.highest) * factor;
    }
  }
  GroupIndex index;
  const float* x;
  float* y;
};

// dx = y (dy - the sum of y dy)
struct SoftmaxBackward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    const int64_t first = index.first(group);
    double sum = 0;
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      sum += static_cast<double>(y[i]) * static_cast<double>(dy[i]);
    }
    const auto projection = static_cast<float>(team.sum(sum));
    for (int64_t r = team.rank(); r < index.reduced; r += team.size()) {
      const int64_t i = first + r * index.inner;
      dx[i] = y[i] * (dy[i] - projection);
    }
  }
  GroupIndex index;
  const float *y, *dy;
  float* dx;
};

class SoftmaxCuda {
 public:
  SoftmaxCuda(const sdk::Binding& binding, const sdk::Call&)
      : groups_(groups(binding.input(0), binding.attributes.integer("axis"))) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams_for(groups_),
                    SoftmaxForward{GroupIndex(groups_), pass.input(0).get(), pass.output(0).get()});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams_for(groups_),
                    SoftmaxBackward{GroupIndex(groups_), pass.output(0).get(),
                                    pass.output_gradient(0).get(), pass.input_gradient(0).get()});
  }

 private:
  static Groups groups(const tandem_tensor& tensor, int64_t axis) {
    const tandem_shape& s = tensor.shape;
    if (axis > 1) {
      const bool last = tensor.layout == TANDEM_NHWC;
      const int64_t planes = last ? s.n : s.n * s.c, channels = last ? s.c : 1;
      if (axis == 2) return {planes, s.h, s.w * channels};
      return {planes * s.h, s.w, channels};
    }
    if (tensor.layout == TANDEM_NHWC) return {s.n * s.h * s.w, s.c, 1};
    return {s.n, s.c, s.h * s.w};
  }
  Groups groups_;
};

}  // namespace tandem::layers
