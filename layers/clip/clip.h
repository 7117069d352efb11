// Clip: y = x between two bounds, the nearer bound elsewhere, element by element. ReLU6 is Clip
// with min 0 and max 6.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Clip : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "Clip"; }
  const char* help() const override { return "limits the values; min 0 and max 6 make ReLU6"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::number("clip_param", "min").required().help("what is below becomes this"),
        sdk::number("clip_param", "max").required().help("what is above becomes this"),
    };
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const double min = query.attributes.number("min"), max = query.attributes.number("max");
    if (!(min < max)) throw sdk::invalid("min ", min, " is not below max ", max);
    return LayerType::shapes(query);
  }
};

}  // namespace tandem::layers
