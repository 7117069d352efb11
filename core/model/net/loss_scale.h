// The loss scale of float16, whose smallest number is 6e-8 and whose largest 65504: all gradients
// are multiplied by it. Losses begin with it and updates divide by it. As a power of two it changes
// nothing else.
#pragma once

#include "core/model/net/net.h"

namespace tandem {

constexpr double max_loss_scale = 65536;
// Error unless it is a power of two from 1 to max_loss_scale.
void require_loss_scale(double scale);
[[nodiscard]] bool computes_in_float16(const Net& net);  // some layer
// 1 if no layer computes in float16.
[[nodiscard]] double loss_scale(const Net& net);

}  // namespace tandem
