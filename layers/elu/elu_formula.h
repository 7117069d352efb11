// ELU's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct EluFormula {
  explicit EluFormula(const sdk::Attributes& attributes)
      : alpha(static_cast<float>(attributes.number("alpha"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float below = alpha * exponential_minus_one(select(x > 0, 0, x));
    return select(x > 0, x, below);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float y) const {
    const float below = y + alpha;
    return select(y > 0, 1, below);
  }
  float alpha;
};

}  // namespace tandem::layers
