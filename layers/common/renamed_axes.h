// The kernel of layers that give a tensor other axes and keep its elements in N,C,H,W order. In
// place they do nothing. Layouts that are not plain are possible if the number of channels does not
// change.
#pragma once

#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class RenamedAxesCpu {
 public:
  RenamedAxesCpu(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)), dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cpu::float32_and_bfloat16;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    const sdk::Shape& from = binding.input(0).shape;
    return from.c == binding.output(0).shape.c ? sdk::any_layout(from.c)
                                               : sdk::LayoutOptions{{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cpu::copy(call.threads, pass.input<T>(0).data(), pass.output<T>(0).data(), elements_);
    });
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cpu::copy(call.threads, pass.output_gradient<T>(0).data(), pass.input_gradient<T>(0).data(),
                elements_);
    });
  }

 private:
  int64_t elements_;
  int32_t dtype_;
};

}  // namespace tandem::layers
