// Power's arithmetic, for every kind of device: the exponents that nets use, and any other.
#pragma once

#include <cmath>

#include "layers/slope.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// value(b) = b^p and slope(b) = p b^(p - 1).
struct ZerothPower {
  TANDEM_HOST_DEVICE static float value(float) { return 1; }
  TANDEM_HOST_DEVICE static float slope(float) { return 0; }
};
struct FirstPower {
  TANDEM_HOST_DEVICE static float value(float b) { return b; }
  TANDEM_HOST_DEVICE static float slope(float) { return 1; }
};
struct SecondPower {
  TANDEM_HOST_DEVICE static float value(float b) { return b * b; }
  TANDEM_HOST_DEVICE static float slope(float b) { return 2 * b; }
};
struct AnyPower {
  float power;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float b) const { return std::pow(b, power); }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float b) const {
    return power * std::pow(b, power - 1);
  }
};

// (shift + scale x)^power; the choice is the same for all elements.
struct PowerFormula {
  explicit PowerFormula(const sdk::Attributes& attributes)
      : power(static_cast<float>(attributes.number("power"))),
        scale(static_cast<float>(attributes.number("scale"))),
        shift(static_cast<float>(attributes.number("shift"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float b = shift + scale * x;
    if (power == 0) return ZerothPower::value(b);
    if (power == 1) return FirstPower::value(b);
    return power == 2 ? SecondPower::value(b) : AnyPower{power}.value(b);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    const float b = shift + scale * x;
    if (power == 0) return scale * ZerothPower::slope(b);
    if (power == 1) return scale * FirstPower::slope(b);
    return scale * (power == 2 ? SecondPower::slope(b) : AnyPower{power}.slope(b));
  }
  float power, scale, shift;
};

}  // namespace tandem::layers
