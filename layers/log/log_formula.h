// Log's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/logarithm_base.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct LogarithmFormula {
  explicit LogarithmFormula(const sdk::Attributes& attributes)
      : factor(static_cast<float>(1 / logarithm_of_base(attributes))),
        scale(static_cast<float>(attributes.number("scale"))),
        shift(static_cast<float>(attributes.number("shift"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const {
    return factor * logarithm(shift + scale * x);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float x) const {
    return factor * scale / (shift + scale * x);
  }
  float factor, scale, shift;
};

}  // namespace tandem::layers
