// Permute on NVIDIA GPUs: one thread per element of the result.
#pragma once

#include "layers/permute/permute.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

template <class T>
struct MoveElements {
  MoveElements(const Permutation& permutation, const T* from, T* to)
      : count(permutation.count), elements(permutation.elements()), source(from), target(to) {
    for (int i = 0; i < count; ++i) {
      const Permutation::Axis& axis = permutation.axes[static_cast<size_t>(i)];
      extents[i] = axis.extent;
      sizes[i] = axis.extent;
      strides[i] = axis.stride;
    }
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, elements);
    int64_t rest = i - row * row_elements(), at = row * row_elements();
    for (int axis = 0; axis < count; ++axis) {
      const int64_t outer = cuda::quotient(rest, extents[axis]);
      at += (rest - outer * sizes[axis]) * strides[axis];
      rest = outer;
    }
    target[i] = source[at];
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t row_elements() const {
    int64_t result = 1;
    for (int axis = 0; axis < count; ++axis) result *= sizes[axis];
    return count == 0 ? 1 : result;
  }

  int count;
  cuda::Divisor elements;
  cuda::Divisor extents[Permutation::most];
  int64_t sizes[Permutation::most], strides[Permutation::most];
  const T* source;
  T* target;
};

class PermuteCuda {
 public:
  PermuteCuda(const sdk::Binding& binding, const sdk::Call&)
      : dtype_(binding.input(0).dtype),
        all_(sdk::count(binding.input(0).shape)),
        forward_(settings(binding).forward()),
        backward_(settings(binding).backward()) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, all_,
                     MoveElements<T>(forward_, pass.input<T>(0).get(), pass.output<T>(0).get()));
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, all_,
                     MoveElements<T>(backward_, pass.output_gradient<T>(0).get(),
                                     pass.input_gradient<T>(0).get()));
    });
  }

 private:
  static PermuteSettings settings(const sdk::Binding& binding) {
    return {binding.attributes, binding.input(0).shape};
  }

  int32_t dtype_;
  int64_t all_;
  Permutation forward_, backward_;
};

}  // namespace tandem::layers
