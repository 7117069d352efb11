// A ReLU that kernels on the cpu do along (tandem_binding.activation): after the value has been
// rounded to the element that is stored, so that the bits are those of a ReLU layer behind it.
#pragma once

#include <cstdint>

#include "plugins/cpu/bfloat16.h"
#include "plugins/pass_elements.h"

namespace tandem::cpu {

using sdk::rectifies;
using sdk::rectifying;

// As an element T, rectified. A NaN stays one.
template <class T>
float rectified(float value) {
  T stored;
  store(value, stored);
  const float rounded = load(stored);
  return rounded < 0 ? 0.0F : rounded;
}

// body(function), or body(what does the ReLU along with it): two loops, each without a choice.
template <class T, class Function, class Body>
void with_rectified(bool rectifies, const Function& function, const Body& body) {
  if (!rectifies) return body(function);
  body([=](auto... values) { return rectified<T>(function(values...)); });
}

}  // namespace tandem::cpu
