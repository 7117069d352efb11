#include "core/model/net/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace tandem {

void require_loss_scale(double scale) {
  int exponent = 0;
  const bool is_power = scale > 0 && std::frexp(scale, &exponent) == 0.5;
  if (is_power && scale >= 1 && scale <= max_loss_scale) return;
  throw error("a loss scale of {}: it must be a power of two from 1 to {}, as 128 or 4096", scale,
              max_loss_scale);
}

bool computes_in_float16(const Net& net) {
  return std::any_of(net.layers.begin(), net.layers.end(),
                     [](const Layer& layer) { return layer.dtype == TANDEM_FLOAT16; });
}

double loss_scale(const Net& net) {
  return computes_in_float16(net) ? net.loss_scale : 1;
}

}  // namespace tandem
