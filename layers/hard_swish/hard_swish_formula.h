// The arithmetic of HardSigmoid and HardSwish, for every kind of device. A NaN stays NaN. The
// slopes where the pieces meet are PyTorch's.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

TANDEM_HOST_DEVICE inline float hard_logistic(float x) {
  const float shifted = x + 3;
  const float below = shifted > 6 ? 6 : shifted;
  return (below < 0 ? 0 : below) * (1.0F / 6);
}

struct HardSigmoidFormula {
  explicit HardSigmoidFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return hard_logistic(x); }
  [[nodiscard]] TANDEM_HOST_DEVICE float gradient(float y, float dy) const {
    const float below = y < 1 ? dy * (1.0F / 6) : 0.0F;
    return y > 0 ? below : 0.0F;
  }
};

struct HardSwishFormula {
  explicit HardSwishFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return x * hard_logistic(x); }
  [[nodiscard]] TANDEM_HOST_DEVICE float gradient(float x, float dy) const {
    const float below = x < 3 ? dy * (x * (1.0F / 3) + 0.5F) : dy;
    return x > -3 ? below : 0.0F;
  }
};

}  // namespace tandem::layers
