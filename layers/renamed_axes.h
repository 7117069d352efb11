// The kernel of layers that give a tensor other axes and leave its elements where they are, in
// N,C,H,W order: in place they do nothing. A layout that is not plain is kept where channels are.
#pragma once

#include <algorithm>

#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class RenamedAxesCpu {
 public:
  RenamedAxesCpu(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    const sdk::Shape& from = binding.input(0).shape;
    return from.c == binding.output(0).shape.c ? sdk::any_layout(from.c)
                                               : sdk::LayoutOptions{{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    copy(call, pass.input(0), pass.output(0));
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    copy(call, pass.output_gradient(0), pass.input_gradient(0));
  }

 private:
  void copy(const sdk::Call& call, const float* source, float* target) const {
    if (source == target) return;
    cpu::for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      std::copy(source + begin, source + end, target + begin);
    });
  }

  int64_t elements_;
};

}  // namespace tandem::layers
