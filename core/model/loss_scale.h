// By what a net's gradients are multiplied, so that float16, whose smallest number is 6e-8 and
// whose largest 65504, holds them: a power of two, so that nothing else changes. Losses begin with
// it, updates divide by it.
#pragma once

#include "core/model/net.h"

namespace tandem {

constexpr double largest_loss_scale = 65536;
// Error unless it is a power of two from 1 to largest_loss_scale.
void require_loss_scale(double scale);
[[nodiscard]] bool computes_in_float16(const Net& net);  // some layer
// 1 where none does.
[[nodiscard]] double loss_scale(const Net& net);

}  // namespace tandem
