// The tensors of a pass as arrays of the element type that a kernel is a template of, and what
// kernels with a fused ReLU share. The type is not checked: it must be that of the binding's dtype.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::sdk {

template <class T>
const T* input(const Pass& pass, size_t i) {
  return static_cast<const T*>(pass.raw.inputs[i]);
}
template <class T>
T* output(const Pass& pass, size_t i) {
  return static_cast<T*>(pass.raw.outputs[i]);
}
template <class T>
T* input_gradient(const Pass& pass, size_t i) {
  return static_cast<T*>(pass.raw.input_gradients[i]);
}
template <class T>
const T* output_gradient(const Pass& pass, size_t i) {
  return static_cast<const T*>(pass.raw.output_gradients[i]);
}

// The `fused_activations` of a kernel that can fuse a ReLU, and whether a binding asks for it.
constexpr uint64_t relu_only = uint64_t{1} << TANDEM_ACTIVATION_RELU;
inline bool fuses_relu(const Binding& binding) {
  return binding.activation() == TANDEM_ACTIVATION_RELU;
}

}  // namespace tandem::sdk
