// The parameter `base` of Exp and Log: a number above zero, or -1 for e, as in Caffe.
#pragma once

#include <cmath>

#include "plugins/sdk.h"

namespace tandem::layers {

// The natural logarithm of the base. Throws Refusal for a base that has none.
inline double logarithm_of_base(const sdk::Attributes& attributes) {
  const double base = attributes.number("base");
  if (base == -1) return 1;
  if (!(base > 0)) throw sdk::invalid("base ", base, " is not above zero (or -1, which means e)");
  return std::log(base);
}

}  // namespace tandem::layers
