// AbsVal: y = |x|, element by element; the slope at zero is zero.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct AbsoluteValue : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "AbsVal"; }
  const char* help() const override { return "absolute value, element by element"; }
};

}  // namespace tandem::layers
