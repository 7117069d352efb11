// Kernels of layers that work element by element: one pass over memory, in whatever order the
// elements lie, vectorised also where input and output are the same memory.
#pragma once

#include <cstdint>

#include "layers/slope.h"
#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// out[i] = function(a[i]). `out` may be `a`, but may not overlap it otherwise.
template <class Function>
void map(int32_t threads, int64_t elements, const float* a, float* out, const Function& function) {
  cpu::for_ranges(threads, elements, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] = function(a[i]);
  });
}

// out[i] = function(a[i], b[i]), of the same kind.
template <class Function>
void map(int32_t threads, int64_t elements, const float* a, const float* b, float* out,
         const Function& function) {
  cpu::for_ranges(threads, elements, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] = function(a[i], b[i]);
  });
}

// The whole kernel of y = value(x). A Function is a formula as slope.h describes it, with a slope.
template <class Function>
class ElementwiseCpu {
 public:
  ElementwiseCpu(const sdk::Binding& binding, const sdk::Call&)
      : function_(binding.attributes), elements_(sdk::count(binding.input(0).shape)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return sdk::any_layout(binding.input(0).shape.c);
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    map(call.threads, elements_, pass.input(0), pass.output(0),
        [f = function_](float x) { return f.value(x); });
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* v = Function::slope_from == SlopeFrom::input ? pass.input(0) : pass.output(0);
    map(call.threads, elements_, v, pass.output_gradient(0), pass.input_gradient(0),
        [f = function_](float value, float dy) { return dy * f.slope(value); });
  }

 private:
  Function function_;
  int64_t elements_;
};

}  // namespace tandem::layers
