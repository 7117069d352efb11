// The arithmetic of Swish and SiLU, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SwishFormula {
  explicit SwishFormula(const sdk::Attributes& attributes)
      : beta(static_cast<float>(attributes.number("beta"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return x * logistic(beta * x); }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    const float s = logistic(beta * x);
    return s + beta * x * (s * (1 - s));
  }
  float beta;
};

struct SiluFormula {
  explicit SiluFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return x * logistic(x); }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    const float s = logistic(x);
    return s + x * (s * (1 - s));
  }
};

}  // namespace tandem::layers
