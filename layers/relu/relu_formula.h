// ReLU's arithmetic, for every kind of device. A NaN stays one.
#pragma once

#include "layers/slope.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// A slope of zero would make NaN of an infinite input, so it has a formula of its own.
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
      : leaky{static_cast<float>(attributes.number("negative_slope"))} {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    return leaky.negative_slope == 0 ? PlainRelu::value(x) : leaky.value(x);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float gradient(float y, float dy) const {
    return leaky.negative_slope == 0 ? PlainRelu::gradient(y, dy) : leaky.gradient(y, dy);
  }
  LeakyRelu leaky;
};

}  // namespace tandem::layers
