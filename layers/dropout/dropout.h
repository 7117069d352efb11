// Dropout: in training, each element is kept with probability 1 - dropout_ratio and then divided by
// it; in testing, elements are copied. The mask depends on (seed, step), the layer, the row of the
// global batch and the element in logical C,H,W order. It does not depend on layout, device or
// split of the batch. Element e is kept if lane e % 4 of random block e / 4 is at least
// dropout_ratio. With per_image element 0 speaks for its whole row: stochastic depth.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Dropout : sdk::LayerType {
  const char* name() const override { return "Dropout"; }
  const char* help() const override { return "drops elements at random in training"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::number("dropout_param", "dropout_ratio")
                .by_default("0.5")
                .range(0, 0.999999)
                .help("probability that an element is dropped"),
            sdk::boolean("dropout_param", "per_image")
                .by_default("false")
                .help("drops all elements of an image, or none (stochastic depth)")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_RANDOM;
  }
};

}  // namespace tandem::layers
