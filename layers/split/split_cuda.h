// Split on NVIDIA GPUs. Its backward pass adds the gradients in the outputs' order, as many at a
// time as a kernel can be told of.
#pragma once

#include <algorithm>

#include "layers/split/split.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct SplitBackward {
  static constexpr int64_t most = 64;

  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    float sum = first[i];
    for (int64_t k = 0; k < count; ++k) sum += others[k][i];
    dx[i] = sum;
  }
  const float* first;
  const float* others[most];
  int64_t count;
  float* dx;
};

class SplitCuda {
 public:
  SplitCuda(const sdk::Binding& binding, const sdk::Call&)
      : outputs_(static_cast<int64_t>(binding.output_count())),
        elements_(sdk::count(binding.input(0).shape)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    for (int64_t i = 0; i < outputs_; ++i) {
      cuda::copy(call, pass.input(0), pass.output(static_cast<size_t>(i)), elements_);
    }
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    float* dx = pass.input_gradient(0);
    const float* first = pass.output_gradient(0);
    for (int64_t next = 1; next < outputs_ || next == 1; next += SplitBackward::most) {
      SplitBackward body{first, {}, std::min(outputs_ - next, SplitBackward::most), dx};
      for (int64_t k = 0; k < body.count; ++k) {
        body.others[k] = pass.output_gradient(static_cast<size_t>(next + k));
      }
      cuda::for_each(call, elements_, body);
      first = dx;
    }
  }

 private:
  int64_t outputs_, elements_;
};

}  // namespace tandem::layers
