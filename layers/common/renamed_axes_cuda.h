// The kernel of layers that give a tensor other axes and keep its elements in order, on NVIDIA
// GPUs; see renamed_axes.h.
#pragma once

#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

class RenamedAxesCuda {
 public:
  RenamedAxesCuda(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)), dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    if (binding.input(0).shape.c == binding.output(0).shape.c) return cuda::plain_layouts();
    return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::copy(call, pass.input<T>(0).get(), pass.output<T>(0).get(), elements_);
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::copy(call, pass.output_gradient<T>(0).get(), pass.input_gradient<T>(0).get(),
                 elements_);
    });
  }

 private:
  int64_t elements_;
  int32_t dtype_;
};

}  // namespace tandem::layers
