// A pass's tensors as elements of the type that a kernel is a template of, and whether it rectifies
// what it stores. Nothing is checked: the binding's dtype says which type is right.
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

// What a kernel that does a ReLU along says as its `fused_activations`, and whether its binding
// asks for it.
constexpr uint64_t rectifying = uint64_t{1} << TANDEM_ACTIVATION_RELU;
inline bool rectifies(const Binding& binding) {
  return binding.activation() == TANDEM_ACTIVATION_RELU;
}

}  // namespace tandem::sdk
