// Threshold's arithmetic, for every kind of device.
#pragma once

#include "layers/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ThresholdFormula {
  explicit ThresholdFormula(const sdk::Attributes& attributes)
      : threshold(static_cast<float>(attributes.number("threshold"))) {}
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    return x > threshold ? 1.0F : 0.0F;
  }
  float threshold;
};

}  // namespace tandem::layers
