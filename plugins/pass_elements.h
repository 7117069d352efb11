// A pass's tensors as elements of the type that a kernel is a template of. Nothing is checked: the
// binding's dtype says which type is right.
#pragma once

#include <cstddef>

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

}  // namespace tandem::sdk
