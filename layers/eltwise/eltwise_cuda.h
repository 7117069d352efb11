// Eltwise on NVIDIA GPUs: one kernel forward, one for each input backward. What the backward pass
// of a product or a maximum needs is saved, as on the cpu.
#pragma once

#include <string>

#include "layers/common/fused_relu_cuda.h"
#include "layers/eltwise/eltwise.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

constexpr int64_t max_eltwise_inputs = 128;

template <class T>
struct EltwiseInputs {
  [[nodiscard]] TANDEM_HOST_DEVICE float at(int64_t k, int64_t i) const {
    return cuda::load(x[k][i]);
  }
  const T* x[max_eltwise_inputs];
  int64_t count;
};

template <class T>
struct EltwiseSum {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    bool result = cuda::are_aligned(y);
    for (int64_t k = 0; k < inputs.count; ++k) result = result && cuda::are_aligned(inputs.x[k]);
    return result;
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(inputs.x[0] + i, inputs.x[1] + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::TwoElements<T, n>& v) const {
    auto sum = cuda::each_lane<n>([&](int lane) {
      return coefficients[0] * v.first[lane] + coefficients[1] * v.second[lane];
    });
    for (int64_t k = 2; k < inputs.count; ++k) {
      const auto other = cuda::read<n>(inputs.x[k] + i);
      const float coefficient = coefficients[k];
      sum = cuda::each_lane<n>([&](int lane) { return sum[lane] + coefficient * other[lane]; });
    }
    write_with_relu(sum, y + i, fuses_relu);
  }
  EltwiseInputs<T> inputs;
  float coefficients[max_eltwise_inputs];
  T* y;
  bool fuses_relu;
};

// factors: those of the gradient of each input, one tensor after the other.
template <class T>
struct EltwiseProduct {
  [[nodiscard]] TANDEM_HOST_DEVICE float product_without(int64_t without, int64_t i) const {
    float result = 1;
    for (int64_t k = 0; k < inputs.count; ++k) {
      if (k != without) result *= inputs.at(k, i);
    }
    return result;
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float result = product_without(-1, i);
    for (int64_t k = 0; k < inputs.count && factors != nullptr; ++k) {
      factors[k * elements + i] = stable ? product_without(k, i) : result / inputs.at(k, i);
    }
    store_with_relu(result, y[i], fuses_relu);  // last: y may be the memory of input 0
  }
  EltwiseInputs<T> inputs;
  bool stable;
  int64_t elements;
  float* factors;
  T* y;
  bool fuses_relu;
};

// factors: the derivatives by the first input, then those by the second.
template <class T>
struct EltwiseCombination {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float a = inputs.at(0, i), b = inputs.at(1, i);
    const Combination all = is_power ? Combination::power(a, b) : Combination::quotient(a, b);
    if (factors != nullptr) {
      factors[i] = all.by_first;
      factors[elements + i] = all.by_second;
    }
    store_with_relu(all.value, y[i], fuses_relu);  // last: y may be the memory of input 0
  }
  EltwiseInputs<T> inputs;
  bool is_power;
  int64_t elements;
  float* factors;
  T* y;
  bool fuses_relu;
};

// Of equal values it takes the second of the first two inputs, after that the earlier.
template <class T>
struct EltwiseMaximum {
  [[nodiscard]] TANDEM_HOST_DEVICE bool wins(float a, float b) const {
    return smallest ? a < b : a > b;
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float first = inputs.at(0, i), second = inputs.at(1, i);
    const bool takes_first = wins(first, second) || first != first;  // a NaN stays NaN
    int64_t from = takes_first ? 0 : 1;
    float best = takes_first ? first : second;
    for (int64_t k = 2; k < inputs.count; ++k) {
      const float other = inputs.at(k, i);
      if (wins(other, best) || other != other) {
        best = other;
        from = k;
      }
    }
    if (taken != nullptr) taken[i] = static_cast<uint8_t>(from);
    store_with_relu(best, y[i], fuses_relu);
  }
  EltwiseInputs<T> inputs;
  bool smallest;
  uint8_t* taken;
  T* y;
  bool fuses_relu;
};

template <class T>
struct EltwiseSumGradient {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const { return cuda::are_aligned(dy, dx); }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(dy + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<T, n>& v) const {
    cuda::write(cuda::each_lane<n>([&](int lane) { return coefficient * v[lane]; }), dx + i);
  }
  float coefficient;
  const T* dy;
  T* dx;
};
template <class T>
struct EltwiseProductGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    cuda::store(cuda::load(dy[i]) * factor[i], dx[i]);
  }
  const float* factor;
  const T* dy;
  T* dx;
};
template <class T>
struct EltwiseMaximumGradient {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const { return cuda::are_aligned(dy, dx, taken); }
  template <int n>
  struct Read {
    cuda::Elements<uint8_t, n> taken;
    cuda::Elements<T, n> dy;
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    return {cuda::read<n>(taken + i), cuda::read<n>(dy + i)};
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read<n>& v) const {
    const auto value = [&](int lane) { return v.taken[lane] == input ? v.dy[lane] : 0.0F; };
    cuda::write(cuda::each_lane<n>(value), dx + i);
  }
  int64_t input;
  const uint8_t* taken;
  const T* dy;
  T* dx;
};

class EltwiseCuda : public sdk::Needs {
 public:
  EltwiseCuda(const sdk::Binding& binding, const sdk::Call&)
      : inputs_(static_cast<int64_t>(binding.input_count())),
        elements_(sdk::count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        stable_(binding.attributes.boolean("stable_prod_grad")),
        operation_(binding.attributes.text("operation")),
        fuses_relu_(binding.fuses_relu()) {
    if (inputs_ > max_eltwise_inputs) {
      throw sdk::unsupported("takes at most ", max_eltwise_inputs, " inputs on a GPU, not ",
                             inputs_, ": add them up in two layers");
    }
    for (const double value : binding.attributes.numbers("coeff")) {
      coefficients_.push_back(static_cast<float>(value));
    }
    coefficients_.resize(binding.input_count(), 1);
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA)) return;
    if (operation_ == "SUM") return;
    saved_bytes = picks() ? elements_ : elements_ * inputs_ * static_cast<int64_t>(sizeof(float));
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t fused_activations = relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) { combine<decltype(element)>(call, pass); });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) { gradients<decltype(element)>(call, pass); });
  }

 private:
  // Of each element the output is that of one input.
  [[nodiscard]] bool picks() const { return operation_ == "MAX" || operation_ == "MIN"; }

  template <class T>
  void combine(const sdk::Call& call, const sdk::DevicePass& pass) const {
    EltwiseInputs<T> inputs{{}, inputs_};
    for (int64_t k = 0; k < inputs_; ++k) {
      inputs.x[k] = pass.input<T>(static_cast<size_t>(k)).get();
    }
    T* y = pass.output<T>(0).get();
    const bool saves = saved_bytes > 0;
    if (picks()) {
      uint8_t* taken = saves ? pass.saved<uint8_t>().get() : nullptr;
      cuda::for_each(call, elements_,
                     EltwiseMaximum<T>{inputs, operation_ == "MIN", taken, y, fuses_relu_});
      return;
    }
    float* factors = saves ? pass.saved().get() : nullptr;
    if (operation_ == "PROD") {
      cuda::for_each(call, elements_,
                     EltwiseProduct<T>{inputs, stable_, elements_, factors, y, fuses_relu_});
    } else if (operation_ == "DIV" || operation_ == "POW") {
      cuda::for_each(
          call, elements_,
          EltwiseCombination<T>{inputs, operation_ == "POW", elements_, factors, y, fuses_relu_});
    } else {
      EltwiseSum<T> sum{inputs, {}, y, fuses_relu_};
      std::copy(coefficients_.begin(), coefficients_.end(), sum.coefficients);
      cuda::for_each(call, elements_, sum);
    }
  }

  // From the last to the first, since input gradient 0 may use the output gradient's memory.
  template <class T>
  void gradients(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const T* dy = pass.output_gradient<T>(0).get();
    for (int64_t k = inputs_; k-- > 0;) {
      T* dx = pass.input_gradient<T>(static_cast<size_t>(k)).get();
      if (dx == nullptr) continue;
      const float coefficient = coefficients_[static_cast<size_t>(k)];
      if (picks()) {
        cuda::for_each(call, elements_,
                       EltwiseMaximumGradient<T>{k, pass.saved<uint8_t>().get(), dy, dx});
      } else if (operation_ != "SUM") {
        cuda::for_each(call, elements_,
                       EltwiseProductGradient<T>{pass.saved().get() + k * elements_, dy, dx});
      } else if (coefficient == 1) {
        cuda::copy(call, dy, dx, elements_);
      } else {
        cuda::for_each(call, elements_, EltwiseSumGradient<T>{coefficient, dy, dx});
      }
    }
  }

  int64_t inputs_, elements_;
  int32_t dtype_;
  bool stable_;
  std::string operation_;
  bool fuses_relu_;
  std::vector<float> coefficients_;
};

}  // namespace tandem::layers
