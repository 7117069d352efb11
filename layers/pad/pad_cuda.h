// Pad on NVIDIA GPUs: one thread per element of the result; backward, one per element of the input,
// which adds its copies in their order.
#pragma once

#include "layers/pad/pad.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

template <class T>
struct PadForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = output.position(i);
    const int64_t row = h.source(at.h), column = w.source(at.w);
    if (row < 0 || column < 0) {
      cuda::store(value, y[i]);
    } else {
      y[i] = x[input.index({at.n, at.c, row, column})];
    }
  }
  PadAxis h, w;
  float value;
  cuda::TensorIndex input, output;
  const T* x;
  T* y;
};

template <class T>
struct PadBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = input.position(i);
    float sum = 0;
    for (int a = 0; a < 3; ++a) {
      const PadAxis::Range rows = h.copies(at.h, a);
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (int b = 0; b < 3; ++b) {
          const PadAxis::Range columns = w.copies(at.w, b);
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            sum += cuda::load(dy[output.index({at.n, at.c, row, column})]);
          }
        }
      }
    }
    cuda::store(sum, dx[i]);
  }
  PadAxis h, w;
  cuda::TensorIndex input, output;
  const T* dy;
  T* dx;
};

class PadCuda {
 public:
  PadCuda(const sdk::Binding& binding, const sdk::Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        input_(binding.input(0)),
        output_(binding.output(0)),
        inputs_(sdk::count(binding.input(0).shape)),
        outputs_(sdk::count(binding.output(0).shape)),
        dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, outputs_,
                     PadForward<T>{settings_.h, settings_.w, settings_.value, input_, output_,
                                   pass.input<T>(0).get(), pass.output<T>(0).get()});
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, inputs_,
          PadBackward<T>{settings_.h, settings_.w, input_, output_,
                         pass.output_gradient<T>(0).get(), pass.input_gradient<T>(0).get()});
    });
  }

 private:
  PadSettings settings_;
  cuda::TensorIndex input_, output_;
  int64_t inputs_, outputs_;
  int32_t dtype_;
};

}  // namespace tandem::layers
