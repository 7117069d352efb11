// Threshold's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ThresholdFormula {
  explicit ThresholdFormula(const sdk::Attributes& attributes)
      : threshold(static_cast<float>(attributes.number("threshold"))) {}
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    const float below = x == x ? 0.0F : x;  // a NaN stays NaN
    return x > threshold ? 1.0F : below;
  }
  float threshold;
};

}  // namespace tandem::layers
