// ReLU's arithmetic, for every kind of device. A NaN stays NaN.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// A slope of zero times an infinite input would be NaN, so a slope of zero has its own formula.
struct PlainRelu {
  TANDEM_HOST_DEVICE static float value(float x) { return x < 0 ? 0.0F : x; }
  TANDEM_HOST_DEVICE static float gradient(float y, float dy) { return y > 0 ? dy : 0.0F; }
};

struct LeakyRelu {
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float below = negative_slope * x;
    return x < 0 ? below : x;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float gradient(float y, float dy) const {
    const float below = negative_slope * dy;
    return y > 0 ? dy : below;
  }
  float negative_slope;
};

struct ReluFormula {
  explicit ReluFormula(const sdk::Attributes& attributes)
      : negative_slope(static_cast<float>(attributes.number("negative_slope"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  template <class Body>
  void choose(const Body& body) const {
    negative_slope == 0 ? body(PlainRelu{}) : body(LeakyRelu{negative_slope});
  }
  float negative_slope;
};

}  // namespace tandem::layers
