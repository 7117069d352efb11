// Sigmoid's arithmetic, for every kind of device.
#pragma once

#include "layers/common/elementwise.h"
#include "layers/common/vector_math.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SigmoidFormula {
  explicit SigmoidFormula(const sdk::Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] TANDEM_HOST_DEVICE float value(float x) const { return logistic(x); }
  [[nodiscard]] TANDEM_HOST_DEVICE float slope(float y) const { return y * (1 - y); }
};

}  // namespace tandem::layers
