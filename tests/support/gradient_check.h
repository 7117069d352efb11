// Compares a layer's backward passes with central finite differences of its forward pass, for a
// random weighted sum of the outputs. The layer must be smooth at the inputs.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/support/layer_test.h"

namespace tandem::test {

struct GradientCheck {
  double step = 1e-2;
  double tolerance = 2e-3;  // of max |a - b| / max |b|, per tensor
};

// The weighted sum of a layer's outputs, in double.
inline double weighted_outputs(const LayerSetup& setup, const std::vector<PlainTensor>& factors) {
  double sum = 0;
  const std::vector<PlainTensor> outputs = LayerRun(setup).forward();
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t k = 0; k < factors[i].values.size(); ++k) {
      sum += static_cast<double>(outputs[i].values[k]) * static_cast<double>(factors[i].values[k]);
    }
  }
  return sum;
}

// The derivative by every element of the tensor that `tensor` selects from the setup.
inline std::vector<double> finite_differences(
    LayerSetup setup, const std::vector<PlainTensor>& factors, double step,
    const std::function<PlainTensor&(LayerSetup&)>& tensor) {
  std::vector<double> result;
  std::vector<float>& values = tensor(setup).values;
  for (float& value : values) {
    const float middle = value;
    value = middle + static_cast<float>(step);
    const double above = value;
    const double high = weighted_outputs(setup, factors);
    value = middle - static_cast<float>(step);
    const double below = value;
    const double low = weighted_outputs(setup, factors);
    value = middle;
    result.push_back((high - low) / (above - below));
  }
  return result;
}

inline void check_gradients(const LayerSetup& setup, const GradientCheck& check = {}) {
  LayerRun run(setup);
  (void)run.forward();
  std::vector<PlainTensor> factors;
  for (const Shape& shape : run.output_shapes()) factors.push_back(random_tensor(shape, 99));
  const std::vector<PlainTensor> input_gradients = run.backward_data(factors);
  for (size_t i = 0; i < input_gradients.size(); ++i) {
    if (input_gradients[i].values.empty()) continue;
    const auto expected = finite_differences(
        setup, factors, check.step, [i](LayerSetup& s) -> PlainTensor& { return s.inputs[i]; });
    EXPECT_LE(relative_difference(input_gradients[i].values, expected), check.tolerance)
        << "gradient of input " << i << ", " << layout_text(setup);
  }
  // A state, such as running means, has no gradient.
  for (const tandem_weight& weight : run.declared_weights()) {
    if (weight.kind != TANDEM_TRAINED) return;
  }
  if (setup.weights.empty()) return;
  const std::vector<PlainTensor> weight_gradients = run.backward_weights(factors);
  for (size_t i = 0; i < weight_gradients.size(); ++i) {
    const auto expected = finite_differences(
        setup, factors, check.step, [i](LayerSetup& s) -> PlainTensor& { return s.weights[i]; });
    EXPECT_LE(relative_difference(weight_gradients[i].values, expected), check.tolerance)
        << "gradient of weight " << i << ", " << layout_text(setup);
  }
}

inline void check_in_every_layout(const LayerSetup& setup, const GradientCheck& check = {}) {
  for (const LayerSetup& one : in_every_layout(setup)) check_gradients(one, check);
}

}  // namespace tandem::test
