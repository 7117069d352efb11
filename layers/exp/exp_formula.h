// Exp's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/logarithm_base.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ExponentialFormula {
  explicit ExponentialFormula(const sdk::Attributes& attributes)
      : a(static_cast<float>(attributes.number("scale") * logarithm_of_base(attributes))),
        b(static_cast<float>(attributes.number("shift") * logarithm_of_base(attributes))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return exponential(a * x + b); }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float y) const { return a * y; }
  float a, b;
};

}  // namespace tandem::layers
