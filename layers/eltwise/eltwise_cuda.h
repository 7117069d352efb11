// Eltwise on NVIDIA GPUs: one kernel forward, one for each input backward. What backward needs of a
// product or a maximum is saved, as on the cpu.
#pragma once

#include <string_view>

#include "layers/eltwise/eltwise.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

constexpr int64_t most_eltwise_inputs = 128;

struct EltwiseInputs {
  const float* x[most_eltwise_inputs];
  int64_t count;
};

struct EltwiseSum {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    float sum = coefficients[0] * inputs.x[0][i] + coefficients[1] * inputs.x[1][i];
    for (int64_t k = 2; k < inputs.count; ++k) sum = sum + coefficients[k] * inputs.x[k][i];
    y[i] = sum;
  }
  EltwiseInputs inputs;
  float coefficients[most_eltwise_inputs];
  float* y;
};

// Factors are what the gradient of each input is multiplied with, one tensor after the other.
struct EltwiseProduct {
  [[nodiscard]] TANDEM_HOST_DEVICE float product_without(int64_t without, int64_t i) const {
    float result = 1;
    for (int64_t k = 0; k < inputs.count; ++k) {
      if (k != without) result *= inputs.x[k][i];
    }
    return result;
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float result = product_without(-1, i);
    for (int64_t k = 0; k < inputs.count && factors != nullptr; ++k) {
      factors[k * elements + i] = stable ? product_without(k, i) : result / inputs.x[k][i];
    }
    y[i] = result;  // last: it may be the memory of input 0
  }
  EltwiseInputs inputs;
  bool stable;
  int64_t elements;
  float *factors, *y;
};

// Of equal values the second of the first two inputs is taken, after that the earlier.
struct EltwiseMaximum {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float first = inputs.x[0][i], second = inputs.x[1][i];
    int64_t from = first > second ? 0 : 1;
    float best = first > second ? first : second;
    for (int64_t k = 2; k < inputs.count; ++k) {
      const float other = inputs.x[k][i];
      if (other > best) {
        best = other;
        from = k;
      }
    }
    if (taken != nullptr) taken[i] = static_cast<uint8_t>(from);
    y[i] = best;
  }
  EltwiseInputs inputs;
  uint8_t* taken;
  float* y;
};

struct EltwiseSumGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { dx[i] = coefficient * dy[i]; }
  float coefficient;
  const float* dy;
  float* dx;
};
struct EltwiseProductGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { dx[i] = dy[i] * factor[i]; }
  const float *factor, *dy;
  float* dx;
};
struct EltwiseMaximumGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { dx[i] = taken[i] == input ? dy[i] : 0.0F; }
  int64_t input;
  const uint8_t* taken;
  const float* dy;
  float* dx;
};

class EltwiseCuda : public sdk::Needs {
 public:
  EltwiseCuda(const sdk::Binding& binding, const sdk::Call&)
      : inputs_(static_cast<int64_t>(binding.input_count())),
        elements_(sdk::count(binding.input(0).shape)),
        stable_(binding.attributes.boolean("stable_prod_grad")),
        product_(binding.attributes.text("operation") == "PROD"),
        maximum_(binding.attributes.text("operation") == "MAX") {
    if (inputs_ > most_eltwise_inputs) {
      throw sdk::unsupported("takes at most ", most_eltwise_inputs, " inputs on a GPU, not ",
                             inputs_, ": add them up in two layers");
    }
    for (const double value : binding.attributes.numbers("coeff")) {
      coefficients_.push_back(static_cast<float>(value));
    }
    coefficients_.resize(binding.input_count(), 1);
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA)) return;
    if (product_) saved_bytes = elements_ * inputs_ * static_cast<int64_t>(sizeof(float));
    if (maximum_) saved_bytes = elements_;
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    EltwiseInputs inputs{{}, inputs_};
    for (int64_t k = 0; k < inputs_; ++k) inputs.x[k] = pass.input(static_cast<size_t>(k));
    float* y = pass.output(0);
    const bool saves = saved_bytes > 0;
    if (product_) {
      cuda::for_each(call, elements_,
                     EltwiseProduct{inputs, stable_, elements_, saves ? pass.saved() : nullptr, y});
    } else if (maximum_) {
      cuda::for_each(call, elements_,
                     EltwiseMaximum{inputs, saves ? pass.saved<uint8_t>() : nullptr, y});
    } else {
      EltwiseSum sum{inputs, {}, y};
      std::copy(coefficients_.begin(), coefficients_.end(), sum.coefficients);
      cuda::for_each(call, elements_, sum);
    }
  }

  // From the last to the first, since input gradient 0 may be the output gradient's memory.
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    for (int64_t k = inputs_; k-- > 0;) {
      float* dx = pass.input_gradient(static_cast<size_t>(k));
      if (dx == nullptr) continue;
      if (product_) {
        cuda::for_each(call, elements_,
                       EltwiseProductGradient{pass.saved() + k * elements_, dy, dx});
      } else if (maximum_) {
        cuda::for_each(call, elements_, EltwiseMaximumGradient{k, pass.saved<uint8_t>(), dy, dx});
      } else if (coefficients_[static_cast<size_t>(k)] == 1) {
        cuda::copy(call, dy, dx, elements_);
      } else {
        cuda::for_each(call, elements_,
                       EltwiseSumGradient{coefficients_[static_cast<size_t>(k)], dy, dx});
      }
    }
  }

 private:
  int64_t inputs_, elements_;
  bool stable_, product_, maximum_;
  std::vector<float> coefficients_;
};

}  // namespace tandem::layers
