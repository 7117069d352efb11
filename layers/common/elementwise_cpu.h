// Kernels on the cpu of layers that work element by element: one pass over memory, in the order in
// which the elements lie. Loops are vectorized even if input and output are the same memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/common/elementwise.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vectorized.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// out[i] = function(a[i]). `out` may be `a`, but may not overlap it otherwise.
template <class Function>
void map(int32_t threads, int64_t elements, const float* a, float* out, const Function& function) {
  const auto range = [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] = function(a[i]);
  };
  cpu::for_ranges(threads, elements, cpu::vectorized(range));
}

// out[i] = function(a[i], b[i]). `out` may be `a` or `b`.
template <class Function>
void map(int32_t threads, int64_t elements, const float* a, const float* b, float* out,
         const Function& function) {
  const auto range = [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] = function(a[i], b[i]);
  };
  cpu::for_ranges(threads, elements, cpu::vectorized(range));
}

namespace detail {
// This many elements are converted to float32, computed and stored again while they are in the L1
// cache.
constexpr int64_t at_once = 2048;
}  // namespace detail

// The same for bfloat16.
template <class Function>
void map(int32_t threads, int64_t elements, const cpu::bfloat16* a, cpu::bfloat16* out,
         const Function& function) {
  const auto range = [=](int64_t begin, int64_t end) {
    float x[detail::at_once];
    for (int64_t at = begin; at < end; at += detail::at_once) {
      const int64_t size = std::min(detail::at_once, end - at);
      cpu::widen(a + at, x, size);
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) x[i] = function(x[i]);
      cpu::narrow(x, out + at, size);
    }
  };
  cpu::for_ranges(threads, elements, cpu::vectorized(range));
}
template <class Function>
void map(int32_t threads, int64_t elements, const cpu::bfloat16* a, const cpu::bfloat16* b,
         cpu::bfloat16* out, const Function& function) {
  const auto range = [=](int64_t begin, int64_t end) {
    float x[detail::at_once], y[detail::at_once];
    for (int64_t at = begin; at < end; at += detail::at_once) {
      const int64_t size = std::min(detail::at_once, end - at);
      cpu::widen(a + at, x, size);
      cpu::widen(b + at, y, size);
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) x[i] = function(x[i], y[i]);
      cpu::narrow(x, out + at, size);
    }
  };
  cpu::for_ranges(threads, elements, cpu::vectorized(range));
}

// The whole kernel of a layer with the given formula (elementwise.h).
template <class Formula>
class ElementwiseCpu {
 public:
  ElementwiseCpu(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding.attributes),
        dtype_(binding.input(0).dtype),
        elements_(sdk::count(binding.input(0).shape)) {}

  static constexpr uint32_t dtypes = cpu::float32_and_bfloat16;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return sdk::any_layout(binding.input(0).shape.c);
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      with_function(formula_, [&](const auto& function) {
        map(call.threads, elements_, pass.input<T>(0).data(), pass.output<T>(0).data(),
            [function](float x) { return function.value(x); });
      });
    });
  }

  void backward_data(const sdk::Call& call,
                     const sdk::Pass& pass) const requires Differentiable<Formula> {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* v = Formula::slope_from == SlopeFrom::input ? pass.input<T>(0).data()
                                                           : pass.output<T>(0).data();
      with_function(formula_, [&](const auto& function) {
        map(call.threads, elements_, v, pass.output_gradient<T>(0).data(),
            pass.input_gradient<T>(0).data(),
            [function](float value, float dy) { return gradient_of(function, value, dy); });
      });
    });
  }

 private:
  Formula formula_;
  int32_t dtype_;
  int64_t elements_;
};

}  // namespace tandem::layers
