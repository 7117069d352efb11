// By what a net's gradients are multiplied, so that float16, whose smallest number is 6e-8, holds
// the small ones: a power of two, so that nothing else changes. Losses begin with it, updates
// divide by it.
#pragma once

#include <algorithm>

#include "core/model/net.h"

namespace tandem {

[[nodiscard]] inline double loss_scale(const Net& net) {
  const bool is_float16 = std::any_of(net.layers.begin(), net.layers.end(), [](const Layer& layer) {
    return layer.dtype == TANDEM_FLOAT16;
  });
  return is_float16 ? 1024 : 1;
}

}  // namespace tandem
