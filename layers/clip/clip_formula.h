// Clip's arithmetic, for every kind of device. A NaN stays NaN.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ClipFormula {
  explicit ClipFormula(const sdk::Attributes& attributes)
      : min(static_cast<float>(attributes.number("min"))),
        max(static_cast<float>(attributes.number("max"))) {}
  // The output is rounded to the tensor's dtype, so that it need not equal a bound that was met.
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float above = x > max ? max : x;
    return above < min ? min : above;
  }
  // Zero at the bounds, too, as in PyTorch.
  [[nodiscard]] TANDEM_HOST_DEVICE float gradient(float x, float dy) const {
    const float below = x < max ? dy : 0.0F;
    return x > min ? below : 0.0F;
  }
  float min, max;
};

}  // namespace tandem::layers
