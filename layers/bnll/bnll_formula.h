// BNLL's arithmetic, for every kind of device.
#pragma once

#include <cmath>

#include "layers/common/elementwise.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct BnllFormula {
  explicit BnllFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  // The argument of exp is never above zero, so that nothing overflows.
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float tail = logarithm_of_one_plus(exponential(-std::fabs(x)));
    return select(x > 0, x, 0) + tail;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const { return logistic(x); }
};

}  // namespace tandem::layers
