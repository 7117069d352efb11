// Power's arithmetic, for every kind of device. The common exponents have loops of their own; the
// others call the C library.
#pragma once

#include <cmath>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// power(b) = b^p and derivative(b) = p b^(p - 1).
struct ZerothPower {
  TANDEM_HOST_DEVICE static float power(float) { return 1; }
  TANDEM_HOST_DEVICE static float derivative(float) { return 0; }
};
struct FirstPower {
  TANDEM_HOST_DEVICE static float power(float b) { return b; }
  TANDEM_HOST_DEVICE static float derivative(float) { return 1; }
};
struct SecondPower {
  TANDEM_HOST_DEVICE static float power(float b) { return b * b; }
  TANDEM_HOST_DEVICE static float derivative(float b) { return 2 * b; }
};
struct AnyPower {
  float exponent;
  [[nodiscard]] TANDEM_HOST_DEVICE float power(float b) const { return std::pow(b, exponent); }
  [[nodiscard]] TANDEM_HOST_DEVICE float derivative(float b) const {
    return exponent * std::pow(b, exponent - 1);
  }
};

// (shift + scale x)^p.
template <class Exponent>
struct ScaledPower {
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    return exponent.power(shift + scale * x);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    return scale * exponent.derivative(shift + scale * x);
  }
  Exponent exponent;
  float scale, shift;
};

struct PowerFormula {
  explicit PowerFormula(const sdk::Attributes& attributes)
      : power(static_cast<float>(attributes.number("power"))),
        scale(static_cast<float>(attributes.number("scale"))),
        shift(static_cast<float>(attributes.number("shift"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  template <class Body>
  void choose(const Body& body) const {
    if (power == 0) {
      body(ScaledPower<ZerothPower>{{}, scale, shift});
    } else if (power == 1) {
      body(ScaledPower<FirstPower>{{}, scale, shift});
    } else if (power == 2) {
      body(ScaledPower<SecondPower>{{}, scale, shift});
    } else {
      body(ScaledPower<AnyPower>{{power}, scale, shift});
    }
  }
  float power, scale, shift;
};

}  // namespace tandem::layers
