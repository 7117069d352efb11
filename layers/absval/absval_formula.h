// AbsVal's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct AbsoluteValueFormula {
  explicit AbsoluteValueFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return x < 0 ? -x : x; }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    const float up = x > 0 ? 1.0F : 0.0F;
    const float down = x < 0 ? 1.0F : 0.0F;
    return up - down;
  }
};

}  // namespace tandem::layers
