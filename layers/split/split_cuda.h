// Split on NVIDIA GPUs. Its backward pass adds the gradients in the outputs' order. A kernel adds a
// limited number of them; each kernel rounds once, and applies the gradient of a ReLU before.
#pragma once

#include "layers/common/elementwise_cuda.h"
#include "layers/relu/relu_formula.h"
#include "layers/split/split.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

constexpr int64_t max_split_sources = 64;

// x: the input, if a ReLU made it whose gradient is to be applied; else nullptr.
template <class T>
struct SplitBackward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    bool result = cuda::are_aligned(first, dx, x);
    for (int64_t k = 0; k < count; ++k) result = result && cuda::are_aligned(others[k]);
    return result;
  }
  template <int n>
  struct Read {
    cuda::TwoElements<T, n> gradients;
    cuda::Elements<T, n> x;
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    Read<n> result{cuda::read_two<n>(first + i, others[0] + i), {}};
    if (x != nullptr) result.x = cuda::read<n>(x + i);
    return result;
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read<n>& v) const {
    const auto& [one, two] = v.gradients;
    auto sum = cuda::each_lane<n>([&](int lane) { return one[lane] + two[lane]; });
    for (int64_t k = 1; k < count; ++k) {
      const auto other = cuda::read<n>(others[k] + i);
      sum = cuda::each_lane<n>([&](int lane) { return sum[lane] + other[lane]; });
    }
    if (x != nullptr) {
      sum = cuda::each_lane<n>([&](int lane) { return PlainRelu::gradient(v.x[lane], sum[lane]); });
    }
    cuda::write(sum, dx + i);
  }
  const T* first;
  const T* others[max_split_sources];
  int64_t count;  // of the others, at least 1
  const T* x;
  T* dx;
};

template <class T>
struct NoGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { dx[i] = T{}; }
  T* dx;
};

class SplitCuda {
 public:
  SplitCuda(const sdk::Binding& binding, const sdk::Call&)
      : outputs_(static_cast<int64_t>(binding.output_count())),
        elements_(sdk::count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        follows_relu_(binding.follows_relu()) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t gradients_before = sdk::relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      for (int64_t i = 0; i < outputs_; ++i) {
        T* y = pass.output<T>(static_cast<size_t>(i)).get();
        cuda::copy(call, x, y, elements_);
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_,
                        [&](auto element) { add_gradients<decltype(element)>(call, pass); });
  }

 private:
  template <class T>
  void add_gradients(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const T* x = follows_relu_ ? pass.input<T>(0).get() : nullptr;
    T* dx = pass.input_gradient<T>(0).get();
    int64_t number = 0;
    // The next gradient that exists; nullptr after the last one.
    const auto next = [&]() -> const T* {
      while (number < outputs_) {
        const T* dy = pass.output_gradient<T>(static_cast<size_t>(number++)).get();
        if (dy != nullptr) return dy;
      }
      return nullptr;
    };
    const T* first = next();
    const T* other = next();
    if (first == nullptr) return cuda::for_each(call, elements_, NoGradient<T>{dx});
    if (other == nullptr && x != nullptr) {
      using OfRelu = detail::ElementwiseBackward<PlainRelu, T>;
      return cuda::for_each(call, elements_, OfRelu{{}, x, first, dx});
    }
    if (other == nullptr) return cuda::copy(call, first, dx, elements_);
    do {
      SplitBackward<T> body{first, {}, 0, x, dx};
      for (; other != nullptr && body.count < max_split_sources; other = next()) {
        body.others[body.count++] = other;
      }
      cuda::for_each(call, elements_, body);
      first = dx;
    } while (other != nullptr);
  }

  int64_t outputs_, elements_;
  int32_t dtype_;
  bool follows_relu_;
};

}  // namespace tandem::layers
