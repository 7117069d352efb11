// BNLL: y = log(1 + exp(x)), binomial normal log likelihood (also called softplus), element by
// element.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Bnll : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "BNLL"; }
  const char* help() const override { return "log(1 + exp(x)), element by element"; }
};

}  // namespace tandem::layers
