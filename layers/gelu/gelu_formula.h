// GELU's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ExactGelu {
  TANDEM_HOST_DEVICE static float value(float x) { return x * Normal(x).below; }
  TANDEM_HOST_DEVICE static float slope(float x) {
    const Normal normal(x);
    return normal.below + x * normal.bell * 0.398942280F;  // 1 / sqrt(2 pi)
  }
};

// (1 + tanh(u)) / 2 = logistic(2 u), with 2 u = x (a + b x^2).
struct GeluByTanh {
  static constexpr float a = 1.59576912F;  // sqrt(8 / pi)
  static constexpr float b = a * 0.044715F;
  TANDEM_HOST_DEVICE static float value(float x) { return x * logistic(x * (a + b * x * x)); }
  TANDEM_HOST_DEVICE static float slope(float x) {
    const float s = logistic(x * (a + b * x * x));
    return s + x * (s * (1 - s)) * (a + 3 * b * x * x);
  }
};

struct GeluFormula {
  explicit GeluFormula(const sdk::Attributes& attributes)
      : exact(attributes.text("approximate") == "none") {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  template <class Body>
  void choose(const Body& body) const {
    exact ? body(ExactGelu{}) : body(GeluByTanh{});
  }
  bool exact;
};

}  // namespace tandem::layers
