// Log: y = log(shift + scale x) to a base, element by element; base -1 means e. The logarithm of
// zero is -infinity, that of a negative number NaN.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "layers/common/logarithm_base.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Logarithm : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "Log"; }
  const char* help() const override { return "log_base(shift + scale * x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::number("log_param", "base").by_default("-1").help("above zero, not 1; -1 means e"),
        sdk::number("log_param", "scale").by_default("1").help("factor of the input"),
        sdk::number("log_param", "shift").by_default("0").help("added to the scaled input"),
    };
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    if (logarithm_of_base(query.attributes) == 0) {
      throw sdk::invalid("base 1 has no logarithm: every power of 1 is 1");
    }
    return LayerType::shapes(query);
  }
};

}  // namespace tandem::layers
