// Exp: y = base^(shift + scale x), element by element; base -1 means e. Can run in place: the slope
// y scale log(base) is computed from the output.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "layers/common/logarithm_base.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Exponential : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "Exp"; }
  const char* help() const override { return "base ^ (shift + scale * x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::number("exp_param", "base").by_default("-1").help("above zero; -1 means e"),
        sdk::number("exp_param", "scale").by_default("1").help("factor of the input"),
        sdk::number("exp_param", "shift").by_default("0").help("added to the scaled input"),
    };
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    static_cast<void>(logarithm_of_base(query.attributes));
    return LayerType::shapes(query);
  }
};

}  // namespace tandem::layers
