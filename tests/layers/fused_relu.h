// What tests of fused ReLUs share: numbers of all kinds, and layers beside a ReLU layer.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "tests/support/layer_test.h"

namespace tandem::test {

// Numbers of all kinds, among them some that round to -0 in 16 bits.
inline PlainTensor strange_tensor(const Shape& shape, unsigned seed) {
  PlainTensor result = random_tensor(shape, seed);
  const float strange[] = {NAN, -0.0F, 0.0F, -INFINITY, INFINITY, -1e-42F, -3e-7F, 1e-42F};
  for (size_t i = 0; i < std::size(strange); ++i) {
    result.values[(7 * i + 3) % result.values.size()] = strange[i];
  }
  return result;
}

inline bool is_relu_among(uint32_t activations) {
  return (activations >> TANDEM_ACTIVATION_RELU & 1U) != 0;
}
inline const tandem_kernel& kernel_of(const LayerSetup& setup) {
  return layer_registry().kernel(setup.type, kernel_device().kind());
}
inline bool knows(const tandem_kernel& kernel, int32_t dtype) {
  return dtype == TANDEM_FLOAT32 || (kernel.dtypes >> dtype & 1U) != 0;
}
inline bool can_fuse(const LayerSetup& setup) {
  return is_relu_among(kernel_of(setup).fused_activations);
}

inline LayerSetup with_relu(LayerSetup setup) {
  setup.activation = TANDEM_ACTIVATION_RELU;
  return setup;
}

// All NaN as the same one, since float16 in these tests has only one.
inline std::vector<uint32_t> bits(const PlainTensor& tensor) {
  std::vector<uint32_t> result;
  for (const float value : tensor.values) {
    result.push_back(std::bit_cast<uint32_t>(std::isnan(value) ? NAN : value));
  }
  return result;
}

inline LayerSetup relu_after(const LayerSetup& before, const PlainTensor& values) {
  LayerSetup relu{.type = "ReLU", .inputs = {values}};
  relu.input_layout = relu.output_layout = before.output_layout;
  relu.input_dtype = relu.output_dtype = before.output_dtype;
  return relu;
}

inline PlainTensor through_relu(const PlainTensor& values, const LayerSetup& before) {
  LayerSetup relu = relu_after(before, values);
  relu.flags |= TANDEM_RUNS_IN_PLACE;
  return LayerRun(relu).forward()[0];
}

}  // namespace tandem::test
